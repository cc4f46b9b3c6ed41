package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/task"
)

// StopError is the cause of the end of an attempt that a signal ended.
type StopError struct{ Signal os.Signal }

func (e *StopError) Error() string { return fmt.Sprintf("stopped by a signal: %s", e.Signal) }

// Outcome is that of a process that was killed by the signal, as curl would have been.
func (e *StopError) Outcome() task.Outcome {
	o := task.Outcome{Exit: task.ExitInternal, Message: e.Error()}
	if number, ok := e.Signal.(syscall.Signal); ok {
		o.Exit, o.Signal = task.ExitSignalBase+int(number), stopSignal(number)
	}
	return o
}

func stopSignal(number syscall.Signal) string {
	switch number {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return ""
}

// WithSignals returns a context that ends with a StopError at the first signal that asks to stop; others are ignored.
// The returned function ends the context, and returns that signal. Without a channel nobody listens: a worker, which
// sends many requests, ends the context with a StopError itself.
func WithSignals(ctx context.Context, signals <-chan os.Signal) (context.Context, func() os.Signal) {
	if signals == nil {
		return ctx, func() os.Signal { return stopOf(ctx) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var stop os.Signal
	go func() {
		defer close(ended)
		for stop == nil {
			select {
			case sig := <-signals:
				if task.Stops(sig) {
					stop = sig
					cancel(&StopError{sig})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() os.Signal {
		cancel(nil)
		<-ended
		if stop == nil { // the context was ended in place of it
			stop = stopOf(ctx)
		}
		return stop
	}
}

// stopOf returns the signal that has ended a context; nil for none.
func stopOf(ctx context.Context) os.Signal {
	if stop, ok := errors.AsType[*StopError](context.Cause(ctx)); ok {
		return stop.Signal
	}
	return nil
}

// lateStop returns the signal that asked to stop while a command ran; nil for none. Where its failure ends the task, it
// waits a moment for one: who stops everything signals the command as well, many programs exit with 1 then, and no
// resume would take up the task.
func (r *Runner) lateStop(t *task.Task, o task.Outcome) os.Signal {
	if o.Stop != nil || t.Target != nil || o.Error != task.ErrorNone || r.LateStop == nil {
		return o.Stop
	}
	r.LateStop()
	return r.pendingStop()
}

// TogetherDelay is how much later a signal may come that somebody sends together with another one, or to the command,
// too: as pkill -f, a container runtime and a service manager do.
const TogetherDelay = 50 * time.Millisecond

// hungUp is the decision for a run that a signal has stopped. HUP on a terminal says that somebody has closed it,
// unless TERM comes with it, as from a service manager that stops a session: the terminal may go first then, and the
// system delivers the lower number first.
func (r *Runner) hungUp(d task.Decision, stop os.Signal) task.Decision {
	if !r.Terminal || stop != syscall.SIGHUP || d.Verdict != task.VerdictInterrupted {
		return d
	}
	for over := time.After(TogetherDelay); ; {
		select {
		case sig := <-r.Signals:
			if sig == syscall.SIGTERM {
				return d
			}
		case <-over:
			d.Reason = task.ReasonHangup
			return d
		}
	}
}

// pendingStop takes the signals that have arrived, up to the first that asks to stop, and returns that.
func (r *Runner) pendingStop() os.Signal {
	for {
		select {
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig
			}
		default:
			return nil
		}
	}
}
