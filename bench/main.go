// Command bench times retry as whole processes: next to a bare command, and next to Debian's retry where that is installed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// options are the command line's flags.
type options struct {
	runs     int    // measured runs of each short command
	longRuns int    // measured runs of each command with 100 attempts
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
	flag.IntVar(&o.longRuns, "long-runs", 20, "measured `runs` of each command with 100 attempts")
	flag.StringVar(&o.json, "json", "", "write the figures to `FILE` as JSON too")
	flag.Parse()
	return o
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.runs < 1 || o.longRuns < 1 {
		return fmt.Errorf("read flags: -runs and -long-runs start at 1")
	}
	dir, err := os.MkdirTemp("", "retry-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)

	binary := filepath.Join(dir, "retry")
	if err := build(ctx, binary); err != nil {
		return err
	}
	groups, err := plan(o, binary, findDebian(ctx, filepath.SplitList(os.Getenv("PATH"))), dir)
	if err != nil {
		return err
	}
	big, err := grown(ctx, o, binary, dir)
	if err != nil {
		return err
	}
	http, done, err := requests(o, binary, dir)
	if err != nil {
		return err
	}
	defer done()
	groups = append(groups, http, big)
	result := report{Facts: gatherFacts(ctx, dir)}
	for _, g := range groups {
		if len(g.commands) == 0 {
			continue
		}
		figures, err := g.measure(ctx)
		if err != nil {
			return err
		}
		result.Groups = append(result.Groups, figures)
	}
	result.markdown(out)
	return result.writeJSON(o.json)
}

// build compiles the checkout's retry as a release is.
func build(ctx context.Context, binary string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	script := filepath.Join(strings.TrimSpace(string(root)), ".ci", "release")
	if said, err := exec.CommandContext(ctx, "bash", script, binary).CombinedOutput(); err != nil {
		return fmt.Errorf("build retry: %w\n%s", err, said)
	}
	return nil
}
