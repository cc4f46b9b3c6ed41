package task

import (
	"os"
	"syscall"
)

// Stopped decides for a task whose retry was told to stop. Ctrl-C (SIGINT) and Ctrl-\ (SIGQUIT) make the task
// CANCELLED; after any other signal it is interrupted, and can be resumed.
func Stopped(sig os.Signal) Decision {
	if sig == os.Interrupt || sig == syscall.SIGQUIT {
		return Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
	}
	return Decision{Verdict: VerdictInterrupted}
}

// Stops reports whether a signal asks retry to end. The others are only forwarded to a running attempt.
func Stops(sig os.Signal) bool {
	switch sig {
	case os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}
