package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// resumeAll resumes several tasks at the same time. The exit status is 0 when all of them succeeded.
func (c *resumeCommand) resumeAll(ctx context.Context, p *Process, journal state.Store,
	tasks []*task.Task) (int, error) {
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
			guarded := &session.Journal{Journal: journal, Stopping: p.Stopping(), Resumes: true}
			run, err := several.NewResumer(t, guarded, observer, c.continuation())
			if err == nil {
				sayResumed(observer, t)
				run.Signals, run.Slots = channels[i], slots
				results[i], err = run.Resume(ctx, t)
				run.Close()
			}
			if err != nil {
				p.printError(err)
				results[i] = runner.Result{Outcome: task.Outcome{Exit: task.ExitInternal}}
			}
			_ = journal.Release(t.Number) // while this process runs other tasks, it can be requeued
			if t.Name != "" {
				_ = journal.ReleaseName(t.Name)
			}
		})
	}
	group.Wait()
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
	if len(tasks) > 1 {
		observer.Say(resumeSummary(tasks))
	}
	return code, nil
}

// resumeSummary counts what became of tasks, for people.
func resumeSummary(tasks []*task.Task) string {
	var parts []string
	for _, end := range []struct {
		statuses []task.Status
		words    string
	}{
		{[]task.Status{task.Succeeded}, "succeeded"}, {[]task.Status{task.Exhausted}, "gave up"},
		{[]task.Status{task.Failed}, "failed"}, {[]task.Status{task.Cancelled}, "cancelled"},
		{[]task.Status{task.Pending, task.InFlight}, "not finished"},
	} {
		n := 0
		for _, t := range tasks {
			if slices.Contains(end.statuses, t.Status) {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, end.words))
		}
	}
	return "resumed " + text.Count(len(tasks), "task") + ": " + strings.Join(parts, ", ")
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
