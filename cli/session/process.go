package session

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/task"
)

// Host is what a run needs of the process it is in.
type Host struct {
	Environ               []string
	Stdin, Stdout, Stderr *os.File

	stderr  *patientStderr // of Stderr, for the lines of a run
	stopped context.Context
	stop    context.CancelCauseFunc // ends stopped
}

// Getenv looks a variable up in the process's environment; the last one of a name wins, as for a child.
func (p *Host) Getenv(name string) string {
	value := ""
	for _, kv := range p.Environ {
		if rest, ok := strings.CutPrefix(kv, name); ok && strings.HasPrefix(rest, "=") {
			value = rest[1:]
		}
	}
	return value
}

// patientStderr writes retry's own lines. Where nobody reads them it waits, as any program would; but once a signal has asked to
// stop, nothing may wait, so they are dropped then.
type patientStderr struct {
	*os.File
	stopping <-chan struct{} // closed by the first signal that asked to stop
}

// lookAgain is how often a signal is looked for while nobody reads.
const lookAgain = 50 * time.Millisecond

// lines is where the lines of a run are written.
func (p *Host) lines() *patientStderr {
	if p.stderr == nil {
		p.stderr = &patientStderr{File: p.Stderr, stopping: p.Stopping().Done()}
	}
	return p.stderr
}

// Stopping returns a context that ends with the first signal that asks to stop, once listen takes in signals.
func (p *Host) Stopping() context.Context {
	if p.stopped == nil {
		p.stopped, p.stop = context.WithCancelCause(context.Background())
	}
	return p.stopped
}

// Listen begins to take in signals. There is one place that they come to: one that came between two would end stopping, and no wait.
func (p *Host) Listen() <-chan os.Signal {
	p.Stopping()
	heard, signals := make(chan os.Signal, SignalBuffer), make(chan os.Signal, SignalBuffer)
	Notify(heard)
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

// Stream returns the stream of ours that a path names; nil where it names none. Such a path must not be followed: where the stream
// leads to a file, that has more in it than the report.
func (p *Host) Stream(path string) *os.File {
	switch path {
	case "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return p.Stdout
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return p.Stderr
	}
	return nil
}
