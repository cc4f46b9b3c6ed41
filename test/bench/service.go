package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/10f93571/retry/test/bench/load"
)

// service prints the rows of retry serve: the same that test/bench/rivals prints beside other systems. Short ones are
// measured three times at most, each in a journal of its own. The build before gets no million tasks.
func (p plan) service(ctx context.Context, out io.Writer, sizes load.Sizes) error {
	var systems []load.System
	for _, name := range []string{"retry", "before"} {
		if p.programs[name] == "" {
			continue
		}
		s := &load.Retry{Label: name, Program: p.programs[name], Concurrency: load.Slots,
			Dir: filepath.Join(p.dir, "service-"+name)}
		if err := os.Mkdir(s.Dir, 0o700); err != nil {
			return fmt.Errorf("make a folder for journals: %w", err)
		}
		defer s.Close()
		systems = append(systems, s)
	}
	measured := load.Plan{Systems: systems, Rows: load.Rows(), Runs: min(3, p.runs), Sizes: sizes,
		Log: os.Stderr, Leaves: func(row string, s load.System) bool {
			return strings.HasPrefix(row, "million") && s.Name() == "before" ||
				strings.HasSuffix(row, "memory") && runtime.GOOS != "linux"
		}}
	results, err := measured.Measure(ctx)
	if err != nil {
		return fmt.Errorf("measure the service: %w", err)
	}
	fmt.Fprintf(out, "\nThe service: %d slots, bodies of %d bytes, medians of %d.\n\n", load.Slots,
		len(load.Body), measured.Runs)
	load.Markdown(out, results)
	return load.Failed(results)
}
