package cli

import (
	"context"
	"os"
	"runtime"
	"sync"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// resumeAll resumes several tasks at the same time, since one may wait for hours. The exit status is 0 when all of them
// succeeded.
func (c *resumeCommand) resumeAll(ctx context.Context, p *Process, journal *sqlite.Journal, tasks []*task.Task) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	several := *p
	several.Stdin = null // the tasks cannot share one stdin
	slots := make(chan struct{}, max(4, runtime.NumCPU()))
	observer := render.Shared(session.NewObserver(&p.Host, &c.OutputFlags))
	channels := copySignals(p.Listen(), len(tasks))

	results := make([]runner.Result, len(tasks))
	var group sync.WaitGroup
	for i, t := range tasks {
		group.Go(func() {
			results[i] = c.resumeInGroup(ctx, &several, journal, t, observer, func(r *runner.Runner) {
				r.Signals, r.Slots = channels[i], slots
			})
		})
	}
	group.Wait()
	return summarise(journal, results), nil
}

// resumeInGroup resumes one of several tasks. It prints an error, which does not stop the others.
func (c *resumeCommand) resumeInGroup(ctx context.Context, p *Process, journal *sqlite.Journal, t *task.Task,
	observer render.Observer, prepare func(*runner.Runner)) runner.Result {
	defer release(journal, t)
	result, err := func() (runner.Result, error) {
		run, err := p.NewResumer(t, &session.Journal{Journal: journal, Stopping: p.Stopping()}, observer, c.continuation())
		if err != nil {
			return runner.Result{}, err
		}
		defer run.Close()
		prepare(run.Runner)
		return run.Resume(ctx, t)
	}()
	if err != nil {
		printError(p.Stderr, err)
		return runner.Result{Outcome: task.Outcome{Exit: task.ExitInternal}}
	}
	return result
}

// summarise turns the results into one exit status. Where a signal ended a task, retry dies of that signal.
func summarise(journal *sqlite.Journal, results []runner.Result) int {
	code := 0
	for _, r := range results {
		if r.ExitCode() != 0 {
			code = 1
		}
		if sig := r.DeathSignal(); sig != nil {
			_ = journal.Close() // every write was committed already
			session.DieOf(sig)
		}
	}
	return code
}

// copySignals returns n channels that each get every signal.
func copySignals(signals <-chan os.Signal, n int) []chan os.Signal {
	channels := make([]chan os.Signal, n)
	for i := range channels {
		channels[i] = make(chan os.Signal, session.SignalBuffer)
	}
	go func() {
		for sig := range signals {
			for _, c := range channels {
				select {
				case c <- sig:
				default: // the buffer is full of signals that were not yet acted on
				}
			}
		}
	}()
	return channels
}
