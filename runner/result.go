package runner

import (
	"errors"
	"os"
	"syscall"

	"github.com/10f93571/retry/task"
)

// Result is how a run of the loop ended.
type Result struct {
	Decision   task.Decision
	Outcome    task.Outcome // of the last attempt
	Signal     os.Signal    // that ended the run; nil for none
	LateSignal os.Signal    // that came while the end was told, or ended the last hook; nil for none
	OutputErr  error        // why held output could not be written; nil if it was
	LeftRuns   bool         // the budget ended while what an earlier attempt has left ran on
}

// ExitCode returns the exit status of retry for a run: 0 for success, else that of the last attempt, 1 if that was 0. A
// success whose output is lost is a failure: if its reader was gone, the status is that of a command that wrote to it.
func (r Result) ExitCode() int {
	succeeded := r.Decision.Verdict == task.VerdictSucceeded
	switch {
	case succeeded && r.OutputErr == nil:
		return task.ExitSuccess
	case succeeded && r.Outcome.Reply != nil:
		return task.ExitReplyLost
	case succeeded && errors.Is(r.OutputErr, syscall.EPIPE):
		return task.ExitSignalBase + int(syscall.SIGPIPE)
	case succeeded:
		return task.ExitInternal
	case r.Decision.Reason == task.ReasonDeferred && r.Signal == nil:
		return task.ExitDeferred
	}
	if code := r.Outcome.ExitCode(); code != 0 {
		return code
	}
	return task.ExitUnsuccessful
}

// Lost reports whether the output of a success is lost, and somebody would have read it.
func (r Result) Lost() bool {
	return r.Decision.Verdict == task.VerdictSucceeded && r.OutputErr != nil && !readerGone(r.OutputErr)
}

// DeathSignal returns the signal that retry has to die of, so that its caller sees what it would have seen without
// retry: the one that cancelled the task, or ended a wait, or ended the command too. It is nil where retry just exits.
func (r Result) DeathSignal() os.Signal {
	switch {
	case r.LateSignal != nil:
		return r.LateSignal
	case r.Decision.Verdict == task.VerdictCancelled, errors.Is(r.OutputErr, task.ErrStopped):
		return r.Signal
	case (r.Decision.Verdict == task.VerdictInterrupted || r.Decision.Reason == task.ReasonStdin) &&
		(r.Outcome.Stop == nil || r.Outcome.Signal != ""):
		return r.Signal
	case r.Decision.Reason == task.ReasonAmbiguous: // it could not be left interrupted
		return r.Signal
	}
	return nil
}
