package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/10f93571/retry/test/bench/load"
)

// service prints the rows of retry serve: the same that test/bench/rivals prints beside other systems. Each is measured
// three times at most, in a journal of its own.
func (p plan) service(ctx context.Context, out io.Writer, sizes load.Sizes, million bool) error {
	retry := &load.Retry{Program: p.programs["retry"], Dir: filepath.Join(p.dir, "service"), Concurrency: sizes.InHand}
	if err := os.Mkdir(retry.Dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for journals: %w", err)
	}
	defer retry.Close()
	measured := load.Plan{Systems: []load.System{retry}, Rows: load.Rows(), Runs: min(3, p.runs), Sizes: sizes,
		Log: os.Stderr, Leaves: func(row string, _ load.System) bool {
			return row == "million" && !million || row == "memory" && runtime.GOOS != "linux"
		}}
	results, err := measured.Measure(ctx)
	if err != nil {
		return fmt.Errorf("measure the service: %w", err)
	}
	fmt.Fprintf(out, "\nThe service: %d slots, bodies of %d bytes, medians of %d.\n\n", retry.Concurrency, len(load.Body), measured.Runs)
	load.Markdown(out, results)
	return nil
}
