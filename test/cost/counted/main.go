//go:build cgo

// Command counted is retry, and writes what it cost to the file that $COUNTED names.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"

	"github.com/10f93571/retry/cli"
	"github.com/10f93571/retry/test/cost/count"
)

func main() {
	log.SetOutput(io.Discard)
	if err := count.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	path := os.Getenv("COUNTED")
	_ = os.Unsetenv("COUNTED")
	code := cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	if path != "" {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		text, err := json.Marshal(struct {
			count.Counts
			Allocs, Bytes uint64
		}{count.Read(), m.Mallocs, m.TotalAlloc})
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(code)
}
