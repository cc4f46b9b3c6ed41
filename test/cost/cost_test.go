//go:build linux && cgo

// Package cost holds what a unit of work costs, in counts that do not depend on how fast the machine is.
package cost

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/test/cost/count"
)

var update = flag.Bool("update", false, "write the ledger anew")

// The store that a unit finds: with no other tasks, or with so many that are due tomorrow.
const waiting = 50_000

// Columns of the ledger. A count of -1 is not taken.
var columns = []string{"statements", "steps", "scanned", "log", "calls", "allocs", "bytes"}

// costs are the counts of one unit, in the order of columns.
type costs []float64

const callsColumn = 4

// unit is a piece of work. What it costs is the difference of many and few, for each that is more: that leaves the
// start and the end of the process aside. Where few is 0, many processes do nothing else, and it costs all of one.
type unit struct {
	name      string
	few, many int
	calls     bool // count system calls, too; those of a process that waits for the network depend on who is faster
	run       func(b *bench, dir string, n int) costs
	prepare   func(b *bench, dir string, n int)
}

var units = []unit{
	{name: "claim", few: 20, many: 120, prepare: addRequests, run: claims},
	{name: "settle", few: 20, many: 120, prepare: addRequests, run: settles},
	{name: "deliver a request", few: 20, many: 120, prepare: addRequests, run: deliver},
	{name: "deliver a command", few: 10, many: 60, prepare: addCommands, run: deliver},
	{name: "create", few: 20, many: 120, run: creates},
	{name: "batch of 1000", few: 2, many: 8, run: batches},
	{name: "page of 50", few: 10, many: 60, prepare: addPage, run: pages},
	{name: "retry -- true", many: 1, calls: true, run: process("--", "true")},
	{name: "one more attempt", few: 10, many: 100, calls: true, run: attempts},
	{name: "retry http", many: 1, run: requests},
	{name: "retry status", many: 1, calls: true, prepare: addPage, run: process("status")},
}

// bench is what the units share.
type bench struct {
	*testing.T
	binary, scratch string
	target          *httptest.Server
	strace          string
	texts           map[string]bool // statements that ran
}

func newBench(t *testing.T) *bench {
	testkit.Slow(t, "it builds the program, and fills a store")
	if raced {
		t.Skip("the race detector allocates, and switches threads: the counts are not those of the program")
	}
	testkit.Must(t, started)
	b := &bench{T: t, scratch: t.TempDir(), texts: map[string]bool{}}
	b.binary = filepath.Join(b.scratch, "counted")
	if said, err := exec.Command("go", "build", "-o", b.binary, "./counted").CombinedOutput(); err != nil {
		t.Fatalf("build counted: %v\n%s", err, said)
	}
	b.target = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(b.target.Close)
	b.strace = findStrace(t)
	return b
}

// started is nil where connections are counted; that has to begin before the first is opened.
var started = count.Start()

// copyOf returns a folder with the same files.
func (b *bench) copyOf(dir string) string {
	fresh, err := os.MkdirTemp(b.scratch, "store")
	testkit.Must(b, err, os.CopyFS(filepath.Join(fresh, "s"), os.DirFS(dir)))
	return filepath.Join(fresh, "s")
}

// measure returns the least of some repetitions: what comes between only adds.
func (b *bench) measure(u unit, base string) costs {
	least := func(n int) costs {
		var best costs
		for range 3 {
			dir := b.copyOf(base)
			if u.prepare != nil {
				u.prepare(b, dir, n)
			}
			got := u.run(b, dir, n)
			if u.calls {
				if dir = b.copyOf(base); b.strace != "" {
					got[callsColumn] = b.traced(u, dir, n)
				}
			} else {
				got[callsColumn] = -1
			}
			testkit.Must(b, os.RemoveAll(filepath.Dir(dir)))
			for i := range best {
				best[i] = min(best[i], got[i])
			}
			if best == nil {
				best = got
			}
		}
		return best
	}
	many := least(u.many)
	if u.few == 0 {
		return many
	}
	few := least(u.few)
	for i := range many {
		if many[i] >= 0 {
			many[i] = max(0, (many[i]-few[i])/float64(u.many-u.few))
		}
	}
	return many
}

// report is what counted writes.
type report struct {
	count.Counts
	Allocs, Bytes uint64
}

func (b *bench) reported(path string) costs {
	var r report
	testkit.Must(b, json.Unmarshal([]byte(testkit.Contents(b, path)), &r))
	for _, text := range r.Texts {
		b.texts[text] = true
	}
	return costs{float64(r.Statements), float64(r.Steps), float64(r.Scanned), float64(r.Log), -1,
		float64(r.Allocs), float64(r.Bytes)}
}

func TestCosts(t *testing.T) {
	b := newBench(t)
	empty, full := b.fill(0), b.fill(waiting)
	ledger := ledger{}
	for _, u := range units {
		a, z := b.measure(u, empty), b.measure(u, full)
		ledger[key{u.name, 0}], ledger[key{u.name, waiting}] = a, z
		t.Run(u.name, func(t *testing.T) { same(t, u, a, z) })
	}
	if b.strace == "" {
		t.Log("no strace: system calls are not counted")
	}
	t.Run("plans", func(t *testing.T) { plans(t, full, b.texts) })
	if *update {
		ledger.write(t)
		return
	}
	t.Run("ledger", func(t *testing.T) { ledger.check(t) })
}

// same fails where a unit costs more beside tasks that only wait. Bytes of the log and system calls are not compared:
// they depend on how many pages the rows of a store take up.
func same(t *testing.T, u unit, empty, full costs) {
	for i, column := range columns {
		if column == "log" || column == "calls" {
			continue
		}
		if slack := slackOf(u.name, column, full[i]); full[i] > empty[i]*1.05+slack || empty[i] > full[i]*1.05+slack {
			t.Errorf("%s: got %.1f beside %d waiting tasks, want within 5 %% of %.1f, as without them",
				column, full[i], waiting, empty[i])
		}
	}
}

func sortedTexts(texts map[string]bool) []string {
	var all []string
	for text := range texts {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// slackOf is what a count may differ by beside the few percent. How much a whole process allocates depends on which of
// its goroutines run side by side: two runs differed by 2 %.
func slackOf(unit, column string, count float64) float64 {
	if strings.HasPrefix(unit, "deliver") { // whether an outcome and the next claim meet in one transaction is chance
		return count * 0.2
	}
	switch column {
	case "steps":
		return 5
	case "log":
		return 2000 // half a page
	case "calls":
		return 3
	case "allocs":
		return 5
	case "bytes":
		if count > 200_000 {
			return count * 0.03
		}
		return 512
	}
	return 1
}

// command is the counted program, with its store in dir.
func (b *bench) command(dir string, args ...string) (cmd *exec.Cmd, out string) {
	out = filepath.Join(filepath.Dir(dir), "counts")
	cmd = exec.Command(b.binary, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "RETRY_") || strings.HasPrefix(v, "GO")
	}), "RETRY_STATE_DIR="+dir, "COUNTED="+out, "GOGC=off", "GOMAXPROCS=2")
	return cmd, out
}

func (b *bench) do(dir string, args ...string) costs {
	cmd, out := b.command(dir, args...)
	said, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended { //nolint:errorlint // Run returns it unwrapped
		b.Fatal(err)
	}
	if _, err := os.Stat(out); err != nil {
		b.Fatalf("retry %s: wrote no counts\n%s", fmt.Sprint(args), said)
	}
	return b.reported(out)
}
