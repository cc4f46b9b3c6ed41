package httpexec

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/10f93571/retry/task"
)

// stopError is the cause of the end of an attempt that a signal ended.
type stopError struct{ signal os.Signal }

func (e *stopError) Error() string { return fmt.Sprintf("stopped by a signal: %s", e.signal) }

// outcome is that of a process that died of the signal, as curl would have.
func (e *stopError) outcome() task.Outcome {
	o := task.Outcome{Exit: task.ExitInternal, Message: e.Error()}
	if number, ok := e.signal.(syscall.Signal); ok {
		o.Exit, o.Signal = task.ExitSignalBase+int(number), signalNames[number]
	}
	return o
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT",
}

// listen ends an attempt at the first signal that asks to stop; the others have nobody to go to. The function that it returns ends
// the listening and returns that signal.
func listen(signals <-chan os.Signal, cancel context.CancelCauseFunc) func() os.Signal {
	over, ended := make(chan struct{}), make(chan struct{})
	var stop os.Signal
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-signals:
				if task.Stops(sig) {
					stop = sig
					cancel(&stopError{sig})
					return
				}
			case <-over:
				return
			}
		}
	}()
	return func() os.Signal {
		close(over)
		<-ended
		return stop
	}
}
