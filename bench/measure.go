package main

import (
	"context"
	"encoding/json"
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
	fmt.Fprintf(os.Stderr, "bench: %s: %s\n", g.name, g.title)
	if g.setUp != nil {
		done, err := g.setUp(ctx, &g)
		if err != nil {
			return figures{}, err
		}
		defer done()
	}
	devNull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return figures{}, fmt.Errorf("open the null device: %w", err)
	}
	defer devNull.Close()
	for _, c := range g.commands {
		if err := c.check(devNull); err != nil {
			return figures{}, err
		}
	}
	samples, err := g.rounds(ctx, devNull)
	if err != nil {
		return figures{}, err
	}
	for _, c := range g.commands {
		if err := c.complete(1 + g.warmups + g.runs); err != nil {
			return figures{}, err
		}
	}
	peaks, err := g.peaks(ctx, devNull)
	if err != nil {
		return figures{}, err
	}
	return g.summarise(samples, peaks), nil
}

// rounds runs each command once a round, and keeps the samples of each, but for those to warm up.
func (g group) rounds(ctx context.Context, devNull *os.File) ([][]sample, error) {
	samples := make([][]sample, len(g.commands))
	for round := range g.warmups + g.runs {
		for _, i := range rand.Perm(len(g.commands)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s, err := g.commands[i].time(devNull, devNull)
			if err != nil {
				return nil, err
			}
			if round >= g.warmups {
				samples[i] = append(samples[i], s)
			}
		}
	}
	return samples, nil
}

// check runs the command once, unmeasured: it must end as planned, leave a journal where one is asked for, and many at once have nothing
// to say.
func (c command) check(devNull *os.File) error {
	said, err := os.CreateTemp("", "retry-bench-said-")
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	defer os.Remove(said.Name())
	defer said.Close()
	_, err = c.time(devNull, said)
	text, _ := os.ReadFile(said.Name())
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(text))
	}
	if c.atOnce > 1 && len(text) > 0 {
		return fmt.Errorf("run %s: of many at once some said\n%s", c.label, tail(text))
	}
	if c.state == "" {
		return nil
	}
	if entries, err := os.ReadDir(c.state); err != nil || len(entries) == 0 {
		return fmt.Errorf("run %s: it left no journal\n%s", c.label, tail(text))
	}
	return nil
}

// complete asks a journal that many wrote to at once whether it has all of their tasks, of so many rounds.
func (c command) complete(rounds int) error {
	if c.atOnce <= 1 || c.state == "" {
		return nil
	}
	status := exec.Command(c.argv[0], "status", "--json", "--limit", "0")
	status.Env = c.environment()
	said, err := status.Output()
	if err != nil {
		return fmt.Errorf("read the journal of %s: %w", c.label, err)
	}
	var known struct{ Tasks []struct{ Status string } }
	if err := json.Unmarshal(said, &known); err != nil {
		return fmt.Errorf("read the journal of %s: %w", c.label, err)
	}
	succeeded := 0
	for _, t := range known.Tasks {
		if t.Status == "SUCCEEDED" {
			succeeded++
		}
	}
	if want := rounds * c.atOnce; succeeded != want {
		return fmt.Errorf("run %s: %d tasks succeeded by its journal, not %d", c.label, succeeded, want)
	}
	return nil
}

// time runs the command, or as many of it as are to run at once: then it is the time until all have ended, and the sum of their CPU.
func (c command) time(in, out *os.File) (s sample, err error) {
	var started []*exec.Cmd
	start := time.Now()
	for range max(1, c.atOnce) {
		cmd := c.prepare(in, out)
		if err = cmd.Start(); err != nil {
			err = fmt.Errorf("run %s: %w", c.label, err)
			break
		}
		started = append(started, cmd)
	}
	for _, cmd := range started {
		err = errors.Join(err, c.ended(cmd.Wait()))
		s.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	s.wall = time.Since(start)
	return s, err
}

func (c command) prepare(in, out *os.File) *exec.Cmd {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Env = c.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
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
