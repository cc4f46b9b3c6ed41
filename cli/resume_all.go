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

// resumeAll goes on with several tasks side by side, since one may wait for hours. It exits 0 when all of them succeeded.
func (c *resumeCommand) resumeAll(ctx context.Context, p *Process, journal *sqlite.Journal, tasks []*task.Task) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	several := *p
	several.Stdin = null // they cannot share one
	slots := make(chan struct{}, max(4, runtime.NumCPU()))
	observer := render.Shared(session.NewObserver(&p.Host, &c.OutputFlags))
	channels := fanOut(p.Listen(), len(tasks))

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

// resumeInGroup reports an error of one task without keeping the others.
func (c *resumeCommand) resumeInGroup(ctx context.Context, p *Process, journal *sqlite.Journal, t *task.Task,
	observer render.Observer, prepare func(*runner.Runner)) runner.Result {
	defer letGo(journal, t)
	result, err := func() (runner.Result, error) {
		carrier, err := p.CarryOn(t, &session.Journal{Journal: journal, Stopping: p.Stopping()}, observer, c.continuation())
		if err != nil {
			return runner.Result{}, err
		}
		defer carrier.Close()
		prepare(carrier.Runner)
		return carrier.Resume(ctx, t)
	}()
	if err != nil {
		printError(p.Stderr, err)
		return runner.Result{Outcome: task.Outcome{Exit: task.ExitInternal}}
	}
	return result
}

// summarise turns several results into one exit status; where a signal ended them, retry dies of it.
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

// fanOut gives every signal to each of n listeners.
func fanOut(signals <-chan os.Signal, n int) []chan os.Signal {
	channels := make([]chan os.Signal, n)
	for i := range channels {
		channels[i] = make(chan os.Signal, session.SignalBuffer)
	}
	go func() {
		for sig := range signals {
			for _, c := range channels {
				select {
				case c <- sig:
				default: // it has enough of them to act on
				}
			}
		}
	}()
	return channels
}
