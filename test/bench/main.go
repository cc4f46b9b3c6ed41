// Command bench times retry as whole processes, next to programs that do the same. docs/speed.md explains its tables.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/test/bench/load"
)

func main() {
	runs := flag.Int("runs", 100, "measure each command `N` times, many attempts or processes N/5 times, the service at most 3")
	only := flag.String("only", "", "print only these `TABLES`: success,hundred,together,million,http,waiting,service")
	before := flag.String("before", "", "compare with another build of retry, the program `FILE`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *runs, *only, *before)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, runs int, only, before string) error {
	chosen := func(table string) bool { return only == "" || slices.Contains(strings.Split(only, ","), table) }
	dir, err := os.MkdirTemp("", "retry-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	found, err := gather(ctx, dir, before)
	if err != nil {
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	p := plan{found, max(1, runs), dir, server.URL + "/"}
	system, _ := exec.CommandContext(ctx, "sh", "-c", `cd "$1" && exec 2>/dev/null
printf '%s, %s, load %s, ' "$(uname -sr)" "$(date -u '+%F %T')" "$(cut -d ' ' -f 1 /proc/loadavg)"
printf 'programs and journals on %s.\n' "$(stat -f -c %T .)"
printf 'All programs were copied together into a new folder just before the run; KiB:'
for file in *; do printf ' %s %d' "$file" $(($(wc -c <"$file") / 1024)); done`, "sh", dir+"/programs").Output()
	fmt.Fprintf(out, "%d cores (%s), %s, %s.\n", runtime.NumCPU(), runtime.GOARCH, runtime.Version(), system)
	for _, g := range p.groups() {
		if !chosen(g.name) {
			continue
		}
		if g.name == "million" {
			if err := fillJournal(ctx, p.journal("million")); err != nil {
				return err
			}
		}
		if err := g.measure(ctx, dir); err != nil {
			return err
		}
		g.print(out)
	}
	if chosen("waiting") && runtime.GOOS == "linux" {
		if err := p.waiting(out, 5*time.Second); err != nil {
			return err
		}
	}
	if chosen("service") {
		return p.service(ctx, out, load.Usual())
	}
	return nil
}

// print writes a table. A ratio is one of medians, and in brackets those of 10th percentiles and of processor times.
func (g group) print(out io.Writer) {
	fmt.Fprintf(out, "\n| %s (%d runs) | median ms | p10 | CPU ms | to the first row | to reach | to before |\n"+
		"|---|--:|--:|--:|--:|--:|--:|\n", g.title, g.runs)
	for _, c := range g.commands {
		median, p10, cpu := load.Percentile(c.wall, 50), load.Percentile(c.wall, 10), load.Percentile(c.cpu, 50)
		ratio := func(to *command) string {
			if to == nil {
				return "–"
			}
			m, p, c := load.Percentile(to.wall, 50), load.Percentile(to.wall, 10), load.Percentile(to.cpu, 50)
			return fmt.Sprintf("%.2f (%.2f, %.2f)", median/m, p10/p, cpu/c)
		}
		fmt.Fprintf(out, "| `%s` | %.2f | %.2f | %.2f | %s | %s | %s |\n", c.label, median, p10, cpu,
			ratio(g.commands[0]), cmp.Or(c.reach, "–"), ratio(c.before))
	}
}
