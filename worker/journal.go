package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// journal is the store as the runner of one attempt sees it. The attempt is claimed already, and the next one is not
// this runner's.
type journal struct {
	*Worker
	ctx context.Context
	job *job
}

var errClaimed = errors.New("the worker claims")

// Claim implements runner.Journal.
func (j *journal) Claim(context.Context, *task.Task, time.Time) error { return errClaimed }

// RecordAndClaim implements runner.Journal.
func (j *journal) RecordAndClaim(context.Context, *task.Task, task.Attempt, time.Time) error {
	return errClaimed
}

// Unclaim implements runner.Journal.
func (j *journal) Unclaim(context.Context, *task.Task) {}

// Settle implements runner.Journal. It ends a task whose time was over while it waited.
func (j *journal) Settle(_ context.Context, t *task.Task, d task.Decision) error {
	return j.settleJob(t, task.Attempt{Decision: d})
}

// settleJob writes an outcome. The next attempt waits for the hook that follows it, and so does another task of its
// name. A worker whose outcome is refused has the lock of that hook for a moment, too.
func (j *journal) settleJob(t *task.Task, a task.Attempt) error {
	j.mutex.Lock()
	j.job.executed, j.job.ended = true, t.Status.Finished()
	j.mutex.Unlock()
	j.job.hook = t.Options.NextHook(a.Decision, t.Status) != ""
	told := !j.job.hook || j.beginHook(t)
	err := j.settle(j.ctx, t, a)
	for n := 0; err == nil && !told && n < mostRefused; n++ {
		time.Sleep(refusedPause)
		told = j.beginHook(t)
	}
	return err
}

// A worker whose settlement is refused has the lock of a hook for such a time at the most.
const (
	refusedPause = 10 * time.Millisecond
	mostRefused  = 100
)

func (j *journal) beginHook(t *task.Task) bool {
	told, err := j.Queue.BeginHook(t.Number)
	if err != nil {
		j.warn(fmt.Errorf("another worker may begin beside the hook of task %s: %w", t.ID, err))
	}
	return told || err != nil
}

// NoteProcess implements runner.Journal.
func (j *journal) NoteProcess(ctx context.Context, t *task.Task, process string) bool {
	err := j.Queue.NoteProcess(ctx, t, process)
	if err != nil && !errors.Is(err, task.ErrNotOwner) { // then the end of the attempt tells
		j.warn(err)
	}
	return true // it has waited for the queue
}

// NoteStart implements runner.Journal.
func (j *journal) NoteStart(t *task.Task, process string) { j.Queue.NoteStart(t, process) }

// Record implements runner.Journal. The slot of a request is free before its outcome is written, so that one transaction
// writes that and the next claim. No more outcomes than there are slots may wait for the store like this. A command has
// hooks to run still.
func (j *journal) Record(_ context.Context, t *task.Task, a task.Attempt) error {
	o := a.Outcome
	j.job.slot.asked = o.Stop == nil && o.Started() // what was stopped, or not sent at all, says nothing of the host
	j.job.slot.replied = o.Reply == nil || o.Answered()
	if j.job.isRequest() {
		if j.settling.Add(1) <= int64(j.Concurrency) {
			j.free(j.job)
		}
		defer j.settling.Add(-1)
	}
	return j.settleJob(t, a)
}

// NextAttempt implements runner.Journal.
func (j *journal) NextAttempt(_ context.Context, t *task.Task) time.Time { return t.NextAttemptAt }

// CancelNested implements runner.Journal.
func (j *journal) CancelNested(ctx context.Context, t *task.Task, before time.Time) {
	if t.Kind != task.KindCommand {
		return
	}
	if err := j.Queue.CancelNested(ctx, t, before, time.Now()); err != nil {
		j.warn(err)
	}
}

// silent is an observer of a runner that passes on warnings alone: the worker tells the rest itself.
type silent struct{ *Worker }

// Started implements runner.Observer.
func (silent) Started(*task.Task) {}

// Ended implements runner.Observer.
func (silent) Ended(*task.Task, task.Attempt) {}

// Waiting implements runner.Observer.
func (silent) Waiting(_ *task.Task, left time.Duration) time.Duration { return left }

// Finished implements runner.Observer.
func (silent) Finished(*task.Task, runner.Result) {}

// Warn implements runner.Observer.
func (s silent) Warn(err error) { s.warn(err) }

// unprepared is the executor of an attempt that could not be prepared.
type unprepared struct{ err error }

// Execute implements runner.Executor.
func (u unprepared) Execute(_ context.Context, t *task.Task, _ runner.Call) task.Outcome {
	o := task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: u.err.Error()}
	if t.Target != nil {
		o.Error, o.Reply = task.ErrorLocal, &task.Reply{Default: task.Eligibility{Class: task.ClassFatal}}
	}
	return o
}

// Flush implements runner.Executor.
func (unprepared) Flush(*task.Task, <-chan os.Signal) (os.Signal, error) { return nil, nil }

// HoldsOutput implements runner.Executor.
func (unprepared) HoldsOutput(*task.Task) bool { return false }
