package task

import (
	"os"
	"syscall"
)

// Stops reports whether a signal asks retry to end; the others are only passed on to a running attempt.
func Stops(sig os.Signal) bool {
	switch sig {
	case os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}
