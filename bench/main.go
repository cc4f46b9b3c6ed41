// Command bench times retry as whole processes: next to bare commands, next to Debian's retry where that is installed, and next to
// programs in Go that do less.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
)

// options are the command line's flags.
type options struct {
	runs     int    // measured runs of each short command
	longRuns int    // measured runs of each command with 100 attempts, and of 64 at once
	bytes    int64  // through a pipe
	only     string // a pattern of the groups' names
	against  string // another retry, to compare with; "" for none
	json     string // where the figures go as JSON; "" for nowhere
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, parseFlags(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseFlags() options {
	var o options
	flag.IntVar(&o.runs, "runs", 200, "measured `runs` of each short command")
	flag.IntVar(&o.longRuns, "long-runs", 40, "measured `runs` of each command with 100 attempts, and of 64 at once; of pipes a quarter")
	flag.StringVar(&o.only, "only", "", "only the groups whose name matches `PATTERN`: success, three, hundred, together, million, http, pipes, waiting, start")
	flag.StringVar(&o.against, "before", "", "compare success and hundred with another retry, the program `FILE`")
	flag.StringVar(&o.json, "json", "", "write the figures to `FILE` as JSON too")
	short := flag.Bool("short", false, "64 MiB through a pipe, not 1 GiB")
	flag.Parse()
	o.bytes = 1 << 30
	if *short {
		o.bytes = 64 << 20
	}
	return o
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.runs < 1 || o.longRuns < 1 {
		return fmt.Errorf("read flags: -runs and -long-runs start at 1")
	}
	chosen, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	dir, err := os.MkdirTemp("", "retry-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	tools, err := gatherTools(ctx, dir, o.against)
	if err != nil {
		return err
	}
	r := report{Facts: gatherFacts(ctx, dir), Missing: tools.missing()}
	if err := r.gather(ctx, plan{options: o, tools: tools, dir: dir}, chosen); err != nil {
		return err
	}
	r.markdown(out)
	return r.writeJSON(o.json)
}

// gather measures what is chosen, and holds it against the targets.
func (r *report) gather(ctx context.Context, p plan, chosen *regexp.Regexp) error {
	for _, g := range p.groups(chosen) {
		f, err := g.present().measure(ctx)
		if err != nil {
			return err
		}
		r.Groups = append(r.Groups, f)
	}
	var err error
	if chosen.MatchString("waiting") {
		if r.Waiting, err = p.waiting(ctx); err != nil {
			return err
		}
	}
	if chosen.MatchString("start") {
		if r.Start, err = initialise(ctx, p.retry, p.runs); err != nil {
			return err
		}
	}
	r.Targets = reached(*r)
	return nil
}
