package session

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// carrier is what carries one task through its attempts, put together for this process.
type carrier struct {
	*runner.Runner
	commands *cmdexec.Executor // of the task's command, and of its hooks
	Close    func()            // call it when the run is over
}

// Means are what this process has for the execution of a task.
type Means struct {
	Group *flags.ProcessGroupFlags // of a command; nil: where its terminal is
	Body  *spool.Spool             // what a request reads from stdin; nil where it was not read
	Quiet bool                     // how far a request has got is not shown
}

// carry puts the parts together. An error says that the task's stdin is lost.
func (p *Host) carry(t *task.Task, journal *Journal, lines render.Observer, m Means, resumed bool) (*carrier, error) {
	if t.Kind == request.Kind {
		return p.carryRequest(t, journal, lines, m, resumed)
	}
	stdin, done, err := journal.stdin(t, p.Stdin, resumed, lines.Warn)
	if err != nil {
		return nil, err
	}
	commands := p.commands(t, m)
	commands.Stdin = stdin
	commands.Output = stdio.Output{
		Stdout: p.Stdout, Stderr: p.Stderr, Mode: t.Options.Output, Limit: t.Options.OutputLimit, Capture: t.Options.Capture, Tail: tail(t),
		Temporary: journal.temporary, LimitExceeded: outgrown(lines), HoldFailed: unheld(lines),
	}
	return p.carryWith(t, commands, commands, journal, lines, done), nil
}

func (p *Host) carryWith(t *task.Task, executor runner.Executor, commands *cmdexec.Executor, journal *Journal,
	lines render.Observer, done func()) *carrier {
	return &carrier{
		Runner: &runner.Runner{
			Journal: journal, Executor: executor, Observer: lines, Hooks: cmdexec.Hooks{Executor: commands, Stderr: p.Stderr},
			Random: random(t),
		},
		commands: commands,
		Close:    done,
	}
}

// commands is what runs the processes of a task, without their streams.
func (p *Host) commands(t *task.Task, m Means) *cmdexec.Executor {
	return &cmdexec.Executor{
		Env:             environment(p.Environ, t),
		OnTerminal:      proc.InForeground,
		SecondStopKills: time.Second, // timeout(1) and service managers send two signals at once and do not mean to kill
		SharedGroup:     sharesGroup(m.Group, p.Stdin),
	}
}

// tail is how much of the end of a stream is captured: conditions look at more than is kept.
func tail(t *task.Task) int {
	if t.Policy.Captures() == task.CaptureNone {
		return task.StoredTail
	}
	return task.ConditionTail
}

func outgrown(lines render.Observer) func(*task.Task, int64) {
	return func(t *task.Task, at int64) {
		lines.Warn(fmt.Errorf("attempt %d has written more than %v: its output is passed on from now on, and it will not be tried again\nhint: --output-limit holds more",
			t.AttemptCount, flags.Size(at)))
	}
}

func unheld(lines render.Observer) func(*task.Task, error) {
	return func(t *task.Task, why error) {
		lines.Warn(fmt.Errorf("there is no room to hold the output of attempt %d (%w): it is passed on from now on, and it will not be tried again",
			t.AttemptCount, why))
	}
}

// sharesGroup reports whether the command stays in retry's process group. Where that group has a terminal, or may have it later as a
// job of a shell, prompts and keys work only there. A command whose stdin is something else can still ask at the terminal.
func sharesGroup(g *flags.ProcessGroupFlags, stdin *os.File) bool {
	switch {
	case g != nil && g.Foreground:
		return true
	case g != nil && g.Group:
		return false
	}
	return proc.OnTerminal(stdin) || proc.InForeground()
}

// random returns the source of the task's random numbers. With a seed they depend on it and on the attempt alone, so that they
// are the same in a resumed run.
func random(t *task.Task) func() float64 {
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

// environment returns that of a task's attempts: this process's, with what was kept in its place.
func environment(environ []string, t *task.Task) []string {
	if len(t.Environment) == 0 {
		return environ
	}
	kept := map[string]bool{}
	for _, kv := range t.Environment {
		name, _, _ := strings.Cut(kv, "=")
		kept[name] = true
	}
	var result []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !kept[name] {
			result = append(result, kv)
		}
	}
	for _, kv := range t.Environment {
		if strings.Contains(kv, "=") {
			result = append(result, kv)
		}
	}
	return result
}
