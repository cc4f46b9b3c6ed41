package cli

import (
	"os"
	"time"

	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/runner"
)

// patientStderr writes retry's own lines. Where nobody reads them it waits, as any program would; but once a signal has asked to
// stop, nothing may wait, so they are dropped then.
type patientStderr struct {
	*os.File
	stopping chan os.Signal // holds the first signal that asked to stop
}

// patience is how often a signal is looked for while nobody reads.
const patience = 50 * time.Millisecond

// lines is where the lines of a run are written.
func (p *Process) lines() *patientStderr {
	if p.stderr == nil {
		p.stderr = &patientStderr{File: p.Stderr, stopping: make(chan os.Signal, 1)}
	}
	return p.stderr
}

// listen begins to take in signals.
func (p *Process) listen() <-chan os.Signal {
	notify(p.lines().stopping, runner.Stops)
	signals := make(chan os.Signal, signalBuffer)
	notify(signals, func(os.Signal) bool { return true })
	return signals
}

// Write never reports a line that was dropped.
func (w *patientStderr) Write(p []byte) (int, error) {
	for !cmdexec.Writable(w.File, patience) {
		if len(w.stopping) > 0 {
			return len(p), nil
		}
	}
	return w.File.Write(p)
}
