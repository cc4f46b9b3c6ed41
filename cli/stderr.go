package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/task"
)

// patientStderr writes retry's own lines. Where nobody reads them it waits, as any program would; but once a signal has asked to
// stop, nothing may wait, so they are dropped then.
type patientStderr struct {
	*os.File
	stopping <-chan struct{} // closed by the first signal that asked to stop
}

// lookAgain is how often a signal is looked for while nobody reads.
const lookAgain = 50 * time.Millisecond

// lines is where the lines of a run are written.
func (p *Process) lines() *patientStderr {
	if p.stderr == nil {
		p.stderr = &patientStderr{File: p.Stderr, stopping: p.stopping().Done()}
	}
	return p.stderr
}

// stopping returns a context that ends with the first signal that asks to stop, once listen takes in signals.
func (p *Process) stopping() context.Context {
	if p.stopped == nil {
		p.stopped, p.stop = context.WithCancelCause(context.Background())
	}
	return p.stopped
}

// listen begins to take in signals. There is one place that they come to: one that came between two would end stopping, and no wait.
func (p *Process) listen() <-chan os.Signal {
	p.stopping()
	heard, signals := make(chan os.Signal, signalBuffer), make(chan os.Signal, signalBuffer)
	notify(heard)
	go func() {
		for sig := range heard {
			if task.Stops(sig) {
				p.stop(task.ErrStopped)
			}
			select {
			case signals <- sig:
			default: // whoever listens has enough of them to act on
			}
		}
	}()
	return signals
}

// Write never reports a line that was dropped.
func (w *patientStderr) Write(p []byte) (int, error) {
	for !stdio.Writable(w.File, lookAgain) {
		select {
		case <-w.stopping:
			return len(p), nil
		default:
		}
	}
	return w.File.Write(p)
}

// warn tells of what does not keep a report from being printed.
func (p *Process) warn(err error) {
	printError(p.Stderr, fmt.Errorf("warning: %w", err))
}
