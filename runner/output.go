package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// deliversFirst reports whether the output of a success is written before the success is recorded, so that a resume
// repeats a request whose reply was lost by a kill in between. A request that is not safe to repeat, and a command,
// must not run again only because of their output.
func (r *Runner) deliversFirst(t *task.Task, a task.Attempt) bool {
	return a.Decision.Verdict == task.VerdictSucceeded && t.Target != nil && t.Target.Safe() && r.Executor.HoldsOutput(t)
}

// flush writes or drops the attempt's held output. It returns the first signal that asked to stop, and why output is
// lost.
func (r *Runner) flush(t *task.Task, a task.Attempt) (os.Signal, error) {
	sig, lost := r.Executor.Flush(t, r.Signals)
	if lost != nil {
		what := "command's output"
		if t.Target != nil {
			what = "reply"
		}
		lost = fmt.Errorf("pass on the %s: %w", what, lost)
	}
	if a.Outcome.Stop != nil {
		sig = a.Outcome.Stop
	}
	return sig, lost
}

// readerGone reports whether nobody reads the rest of the output. A success stays one then.
func readerGone(lost error) bool { return errors.Is(lost, syscall.EPIPE) }

// tellsLost reports whether lost output needs a word. What was interrupted comes again, or was not wanted; a success
// that came in spite of a signal does not come again.
func tellsLost(t *task.Task, a task.Attempt, lost error) bool {
	if errors.Is(lost, task.ErrStopped) {
		ended := t.Status.Finished() && t.Status != task.Cancelled
		return ended && (a.Outcome.Stop == nil || t.Status == task.Succeeded)
	}
	return lost != nil && !readerGone(lost)
}

// flushBefore passes on what the attempt before the end of a task has held: it did not know that it was the last.
func (r *Runner) flushBefore(t *task.Task, result *Result) {
	if !r.Executor.HoldsOutput(t) {
		return
	}
	sig, lost := r.flush(t, task.Attempt{})
	if sig != nil {
		result.Signal = sig
	}
	if result.OutputErr = lost; tellsLost(t, task.Attempt{}, lost) {
		r.Observer.Warn(Loss{Err: lost, New: true})
	}
}

// undeliver takes a success back that is not recorded yet, if its output is lost. Where a signal stopped the delivery,
// a resume sends the request again; otherwise the attempt has failed.
func (r *Runner) undeliver(t *task.Task, before task.History, a *task.Attempt, sig os.Signal, lost error) {
	if lost == nil || readerGone(lost) {
		return
	}
	o := &a.Outcome
	o.Message = text.MaskPattern(strings.ReplaceAll(lost.Error(), "\n", "; "), t.Options.Mask) // it has one line
	if errors.Is(lost, task.ErrStopped) {
		stopped := (&StopError{sig}).Outcome()
		o.Exit, o.Signal, o.Stop = stopped.Exit, stopped.Signal, sig
		a.Decision = r.hungUp(task.Stopped(sig), sig)
	} else {
		o.Exit, o.Error = task.ExitReplyLost, task.ErrorLocal
		a.Decision = task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible}
	}
	t.History = before
	t.ApplyDecision(*a, time.Now())
}
