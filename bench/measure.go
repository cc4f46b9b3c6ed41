package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"
)

// sample is one run of a command: from its start until it was reaped. cpu includes the children it waited for.
type sample struct {
	wall, cpu time.Duration
}

// measure runs the commands in turn, in a new order each round, so that a busy moment of the machine hits all alike.
func (g group) measure(ctx context.Context) (figures, error) {
	for _, c := range g.commands {
		if err := c.check(); err != nil {
			return figures{}, err
		}
	}
	devNull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return figures{}, fmt.Errorf("open the null device: %w", err)
	}
	defer devNull.Close()

	samples := make([][]sample, len(g.commands))
	for round := range g.warmups + g.runs {
		for _, i := range rand.Perm(len(g.commands)) {
			if err := ctx.Err(); err != nil {
				return figures{}, err
			}
			s, err := g.commands[i].time(devNull)
			if err != nil {
				return figures{}, err
			}
			if round >= g.warmups {
				samples[i] = append(samples[i], s)
			}
		}
	}
	peaks, err := g.peaks(ctx, devNull)
	if err != nil {
		return figures{}, err
	}
	return g.summarise(samples, peaks), nil
}

// check runs the command once, unmeasured: it must end as planned and leave a journal where one is asked for.
func (c command) check() error {
	cmd := c.prepare(nil)
	said, err := cmd.CombinedOutput()
	if err := c.ended(err); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(said))
	}
	if c.state == "" {
		return nil
	}
	if entries, err := os.ReadDir(c.state); err != nil || len(entries) == 0 {
		return fmt.Errorf("run %s: it left no journal\n%s", c.label, tail(said))
	}
	return nil
}

func (c command) time(devNull *os.File) (sample, error) {
	cmd := c.prepare(devNull)
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err := c.ended(err); err != nil {
		return sample{}, err
	}
	return sample{wall: wall, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

func (c command) prepare(devNull *os.File) *exec.Cmd {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Env = c.environment()
	if devNull != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = devNull, devNull, devNull
	}
	return cmd
}

// ended turns any end but the planned exit code into an error.
func (c command) ended(err error) error {
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		return fmt.Errorf("run %s: %w", c.label, err)
	}
	if code != c.exit {
		return fmt.Errorf("run %s: exit code %d, not %d", c.label, code, c.exit)
	}
	return nil
}

func tail(said []byte) []byte {
	return said[max(0, len(said)-1000):]
}
