package runner

import (
	"errors"
	"os"
	"syscall"
)

// ErrStopped says that a signal ended what was under way.
var ErrStopped = errors.New("stopped by a signal")

// The exit statuses of retry that are not the command's own; the numbers are those of timeout(1) and env(1).
const (
	ExitSuccess       = 0
	ExitUnsuccessful  = 1  // the last attempt exited 0, and yet the task did not succeed
	ExitReplyLost     = 23 // curl's for a reply that could not be written
	ExitNoReply       = 56 // curl's for one that was not received
	ExitDeferred      = 75 // EX_TEMPFAIL of sysexits.h: another run has to go on with it
	ExitTimeout       = 124
	ExitInternal      = 125
	ExitNotExecutable = 126
	ExitNotFound      = 127
	ExitSignalBase    = 128
)

// ExitCode returns the exit status that stands for the outcome. An HTTP request has curl's, whatever went wrong.
func (o Outcome) ExitCode() int {
	switch {
	case o.HTTP != nil && o.IsCrash(): // whether there was a reply, nobody saw
		return ExitNoReply
	case o.HTTP != nil:
		return o.Exit
	}
	switch o.Error {
	case ErrorTimeout:
		return ExitTimeout
	case ErrorNotFound:
		return ExitNotFound
	case ErrorNotExecutable:
		return ExitNotExecutable
	case ErrorStart:
		return ExitInternal
	}
	if o.IsCrash() {
		return ExitInternal
	}
	return o.Exit
}

// Result is how a run of the loop ended.
type Result struct {
	Decision Decision
	Outcome  Outcome   // of the last attempt
	Signal   os.Signal // what ended the run, where a signal did
	Hooked   os.Signal // what ended the last hook, where a signal did
	Lost     error     // why held output could not be passed on; nil where it could
}

// ExitCode returns the exit status of retry for a run: 0 for success, else the last attempt's, 1 where that was 0. A success
// whose output is lost is none: where its reader had gone, the status is that of a command that wrote to it.
func (r Result) ExitCode() int {
	switch {
	case r.Decision.Verdict == VerdictSucceeded && r.Lost != nil:
		return r.exitOfLost()
	case r.Decision.Verdict == VerdictSucceeded:
		return ExitSuccess
	case r.Decision.Reason == ReasonDeferred && r.Signal == nil:
		return ExitDeferred
	}
	if code := r.Outcome.ExitCode(); code != 0 {
		return code
	}
	return ExitUnsuccessful
}

// exitOfLost is the exit status of a success whose output is lost.
func (r Result) exitOfLost() int {
	switch {
	case r.Outcome.HTTP != nil:
		return ExitReplyLost
	case errors.Is(r.Lost, syscall.EPIPE):
		return ExitSignalBase + int(syscall.SIGPIPE)
	}
	return ExitInternal
}

// DeathSignal returns the signal that retry has to die of, so that its caller sees what it would have seen without retry:
// the one that cancelled the task, or ended a wait, or ended the command too. It is nil where retry just exits.
func (r Result) DeathSignal() os.Signal {
	switch {
	case r.Hooked != nil:
		return r.Hooked
	case r.Decision.Verdict == VerdictCancelled, errors.Is(r.Lost, ErrStopped):
		return r.Signal
	case r.Decision.Verdict == VerdictInterrupted && (r.Outcome.Stop == nil || r.Outcome.Signal != ""):
		return r.Signal
	case r.Decision.Reason == ReasonAmbiguous: // it could not be left interrupted
		return r.Signal
	}
	return nil
}
