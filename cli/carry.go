package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/runner"
)

// carrier is what carries one task through its attempts, put together for this process.
type carrier struct {
	*runner.Runner
	executor *cmdexec.Executor
	close    func() // call it when the run is over
}

// carry puts the parts together. An error says that the task's stdin is lost.
func (p *Process) carry(t *runner.Task, journal *guardedJournal, lines render.Observer, g *groupFlags, resumed bool) (*carrier, error) {
	stdin, done, err := journal.stdin(t, p.Stdin, resumed, lines.Warn)
	if err != nil {
		return nil, err
	}
	executor := &cmdexec.Executor{
		Stdin: stdin,
		Output: cmdexec.Output{
			Stdout: p.Stdout, Stderr: p.Stderr, Mode: t.Options.Output, Limit: t.Options.OutputLimit, Capture: t.Options.Capture, Tail: tail(t),
			Temporary: journal.temporary, Outgrown: outgrown(lines), Unheld: unheld(lines),
		},
		Env:         environment(p.Environ, t),
		OnTerminal:  cmdexec.InForeground,
		Insistence:  time.Second, // timeout(1) and service managers send two signals at once and do not mean to kill
		SharedGroup: g.shared(p.Stdin),
	}
	return &carrier{
		Runner: &runner.Runner{
			Journal: journal, Executor: executor, Observer: lines, Hooks: cmdexec.Hooks{Executor: executor, Stderr: p.Stderr},
			Random: random(t),
		},
		executor: executor,
		close:    done,
	}, nil
}

// tail is how much of the end of a stream is captured: conditions look at more than is kept.
func tail(t *runner.Task) int {
	if t.Policy.Looks() == runner.CaptureNone {
		return runner.Kept
	}
	return runner.LookedAt
}

func outgrown(lines render.Observer) func(*runner.Task, int64) {
	return func(t *runner.Task, at int64) {
		lines.Warn(fmt.Errorf("attempt %d has written more than %v: its output is passed on from now on, and it will not be tried again\nhint: --output-limit holds more",
			t.AttemptCount, size(at)))
	}
}

func unheld(lines render.Observer) func(*runner.Task, error) {
	return func(t *runner.Task, why error) {
		lines.Warn(fmt.Errorf("there is no room to hold the output of attempt %d (%w): it is passed on from now on, and it will not be tried again",
			t.AttemptCount, why))
	}
}

// shared reports whether the command stays in retry's process group. Where that group has a terminal, or may have it later as a
// job of a shell, prompts and keys work only there. A command whose stdin is something else can still ask at the terminal.
func (g *groupFlags) shared(stdin *os.File) bool {
	switch {
	case g.Foreground:
		return true
	case g.Group:
		return false
	}
	return cmdexec.OnTerminal(stdin) || cmdexec.InForeground()
}

// random returns the source of the task's random numbers. With a seed they depend on it and on the attempt alone, so that they
// are the same in a resumed run.
func random(t *runner.Task) func() float64 {
	if t.Options.Seed == nil {
		return rand.Float64
	}
	var source *rand.Rand
	attempt := -1
	return func() float64 {
		if attempt != t.AttemptCount {
			attempt = t.AttemptCount
			source = rand.New(rand.NewPCG(*t.Options.Seed, uint64(attempt)))
		}
		return source.Float64()
	}
}
