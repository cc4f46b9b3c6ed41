// Command loop repeats a command until it succeeds, and remembers nothing: what a retry tool costs in Go that does no more.
package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	attempts := flag.Int("n", 10, "all attempts, the first included")
	delay := flag.Duration("d", 0, "the time between two")
	flag.Parse()
	if !succeeds(*attempts, *delay, flag.Args()) {
		os.Exit(1)
	}
}

func succeeds(attempts int, delay time.Duration, args []string) bool {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for n := 1; try(ctx, args) != nil; n++ {
		if n >= attempts || ctx.Err() != nil {
			return false
		}
		pause(ctx, delay)
	}
	return true
}

func try(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
