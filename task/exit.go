package task

import (
	"errors"
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
	case o.Reply != nil && o.IsCrash(): // whether there was a reply, nobody saw
		return ExitNoReply
	case o.Reply != nil:
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
