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
	Signal     os.Signal    // what ended the run, where a signal did
	HookSignal os.Signal    // what ended the last hook, where a signal did
	OutputErr  error        // why held output could not be passed on; nil where it could
}

// ExitCode returns the exit status of retry for a run: 0 for success, else the last attempt's, 1 where that was 0. A
// success whose output is lost is none: where its reader had gone, the status is that of a command that wrote to it.
func (r Result) ExitCode() int {
	switch {
	case r.Decision.Verdict == task.VerdictSucceeded && r.OutputErr != nil:
		return r.exitOfLost()
	case r.Decision.Verdict == task.VerdictSucceeded:
		return task.ExitSuccess
	case r.Decision.Reason == task.ReasonDeferred && r.Signal == nil:
		return task.ExitDeferred
	}
	if code := r.Outcome.ExitCode(); code != 0 {
		return code
	}
	return task.ExitUnsuccessful
}

// exitOfLost is the exit status of a success whose output is lost.
func (r Result) exitOfLost() int {
	switch {
	case r.Outcome.Reply != nil:
		return task.ExitReplyLost
	case errors.Is(r.OutputErr, syscall.EPIPE):
		return task.ExitSignalBase + int(syscall.SIGPIPE)
	}
	return task.ExitInternal
}

// DeathSignal returns the signal that retry has to die of, so that its caller sees what it would have seen without
// retry: the one that cancelled the task, or ended a wait, or ended the command too. It is nil where retry just exits.
func (r Result) DeathSignal() os.Signal {
	switch {
	case r.HookSignal != nil:
		return r.HookSignal
	case r.Decision.Verdict == task.VerdictCancelled, errors.Is(r.OutputErr, task.ErrStopped):
		return r.Signal
	case r.Decision.Verdict == task.VerdictInterrupted && (r.Outcome.Stop == nil || r.Outcome.Signal != ""):
		return r.Signal
	case r.Decision.Reason == task.ReasonAmbiguous: // it could not be left interrupted
		return r.Signal
	}
	return nil
}
