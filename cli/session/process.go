package session

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/task"
)

// Host is what a run needs of the process it is in.
type Host struct {
	Environ               []string
	Stdin, Stdout, Stderr *os.File
	Typed                 []string // the names of the flags on the command line

	stderr     *stderrWriter // of Stderr, for the lines of a run
	stopped    context.Context
	stop       context.CancelCauseFunc // ends stopped
	hurried    context.Context         // ends with the second signal that asks to stop, once Listen was called
	signals    <-chan os.Signal        // of Listen, once it was called
	body       *stdio.Reader           // what a body was read from; nil: none was
	takesRest  bool                    // --fresh: what an earlier line has left of stdin is wanted
	inputEnded time.Time               // when readInput came to the end of what a process wrote; zero: none wrote it
	writerGone func() time.Time        // when stdin lost its last writer; nil: nobody has looked
}

// NoteWriter begins to look for what may end the writer of stdin too early, or that of another input which is read to
// its end. It must be called before the read.
func (p *Host) NoteWriter(toItsEnd bool) {
	gone, isStream := stdio.WatchWriter(p.Stdin)
	if isStream {
		p.writerGone = gone
	}
	if isStream || toItsEnd {
		proc.NoteSignals(toItsEnd)
	}
}

// settleInput leaves stdin to the next line once this one has succeeded: a pipe is free again, and a file whose content
// was sent is at the end of that.
func (p *Host) settleInput() {
	stdio.GiveBack()
	if p.body != nil {
		p.body.Settle()
	}
}

// dieOfSignals has a signal that asks to stop end this process, as before Listen was called, until done is closed.
func dieOfSignals(signals <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case sig := <-signals:
			if task.Stops(sig) {
				DieOf(sig)
			}
		}
	}
}

// Getenv looks a variable up in the process's environment.
func (p *Host) Getenv(name string) string {
	value, _ := flags.LookUp(p.Environ, name)
	return value
}

// SetDefaults gives the flags of a command that were not typed what variables and the config file say. What it warns of
// is for the observer that these flags make.
func (p *Host) SetDefaults(command any, config *flags.ConfigFlag) (file *policies.File, warnings []error, err error) {
	file, err = policies.Load(config, p.Getenv, func(err error) { warnings = append(warnings, err) })
	if err == nil {
		err = policies.SetDefaults(command, p.Typed, file, p.Environ)
	}
	return file, warnings, err
}

// stderrWriter waits where nobody reads stderr, as any program would, until a signal asks to stop: then it drops lines.
type stderrWriter struct {
	file     *os.File        // not embedded: its WriteString would wait for ever
	stopping <-chan struct{} // closed by the first signal that asked to stop
}

// stopCheck is the time between two checks for a signal while nobody reads stderr.
const stopCheck = 50 * time.Millisecond

// messages is where the lines of a run are written.
func (p *Host) messages() *stderrWriter {
	if p.stderr == nil {
		p.stderr = &stderrWriter{file: p.Stderr, stopping: p.Stopping().Done()}
	}
	return p.stderr
}

// Stopping returns a context that ends with the first signal that asks to stop, once Listen was called.
func (p *Host) Stopping() context.Context {
	if p.stopped == nil {
		p.stopped, p.stop = context.WithCancelCause(context.Background())
	}
	return p.stopped
}

// Listen begins to receive signals, and returns the same channel when it is called again. Each one is sent to the
// caller; then one that asks to stop ends Stopping.
func (p *Host) Listen() <-chan os.Signal {
	if p.signals != nil {
		return p.signals
	}
	p.Stopping()
	heard, signals := make(chan os.Signal, SignalBuffer), make(chan os.Signal, SignalBuffer)
	hurried, hurry := context.WithCancel(context.Background())
	p.hurried = hurried
	Notify(heard)
	proc.Receive(heard, func(sig os.Signal) {
		if !slices.Contains(forwarded, sig.(syscall.Signal)) { // it has asked, and was late
			return
		}
		select {
		case signals <- sig:
		default: // the buffer holds enough signals to act on
		}
		switch {
		case !task.Stops(sig):
		case p.stopped.Err() != nil:
			hurry()
		default:
			p.stop(task.ErrStopped)
		}
	})
	p.signals = signals
	return signals
}

// DieOfStop ends this process by the signal that has asked to stop.
func (p *Host) DieOfStop() {
	for {
		select {
		case sig := <-p.Listen():
			if task.Stops(sig) {
				DieOf(sig)
				return
			}
		default:
			return
		}
	}
}

// ListenForEach returns a channel for each of n tasks, which gets every signal. With a WakeSignal, one whose task was
// cancelled meanwhile gets TERM.
func (p *Host) ListenForEach(n int, cancelled func(int) bool) []chan os.Signal {
	channels := make([]chan os.Signal, n)
	for i := range channels {
		channels[i] = make(chan os.Signal, SignalBuffer)
	}
	go func() {
		for sig := range p.Listen() {
			for i, c := range channels {
				own := sig
				if sig == WakeSignal && cancelled(i) {
					own = syscall.SIGTERM
				}
				select {
				case c <- own:
				default: // the buffer is full of signals that were not yet acted on
				}
			}
		}
	}()
	return channels
}

// Write never reports a line that was dropped.
func (w *stderrWriter) Write(p []byte) (int, error) {
	for !stdio.Writable(w.file, stopCheck) {
		select {
		case <-w.stopping:
			return len(p), nil
		default:
		}
	}
	return w.file.Write(p)
}

// Stream returns the stream that a path names; nil where it names none. Such a path must not be opened: where stdout is
// a file, opening it again would overwrite what else was written there.
func (p *Host) Stream(path string) *os.File {
	switch path {
	case "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return p.Stdout
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return p.Stderr
	}
	return nil
}

// SignalBuffer holds what arrives while nobody listens.
const SignalBuffer = 32

// Notify sends the signals to pass on to a channel, without those that were ignored when retry started.
func Notify(signals chan<- os.Signal) {
	for _, sig := range forwarded {
		if !proc.InheritedIgnored(sig) {
			signal.Notify(signals, sig)
		}
	}
	if early != nil {
		signal.Stop(early)
	}
}

// early gets signals until somebody calls Notify; nil where nobody needs that.
var early chan os.Signal

// serveEarly does for the signals what the system does for a signal that nobody handles: it ends the process.
func serveEarly(signals chan os.Signal) {
	early = signals
	go func() {
		for sig := range signals {
			if task.Stops(sig) {
				DieOf(sig)
			}
		}
	}()
}

// SettleSignals keeps ignored signals ignored, as under nohup, for the command too. Otherwise it catches SIGPIPE: a
// write to a closed stdout fails instead of killing retry, and the command has the default action again after exec.
// Until somebody calls Notify, a signal that asks to stop ends the process, as it does any other program.
func SettleSignals() {
	for _, sig := range inheritable {
		if proc.InheritedIgnored(sig) {
			signal.Ignore(sig)
		}
	}
	if !proc.InheritedIgnored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	signals := make(chan os.Signal, SignalBuffer)
	switch {
	case os.Getpid() == 1: // the system spares it, and it adopts orphans
		proc.ReapAdopted()
		Notify(signals)
		serveEarly(signals)
	case !proc.InheritedIgnored(syscall.SIGQUIT): // Go's runtime would print its goroutines, and exit with 2
		signal.Notify(signals, syscall.SIGQUIT)
		serveEarly(signals)
	}
}

// DieOf ends the process by the signal, so that its parent sees what ended it. It returns where there is none.
func DieOf(sig os.Signal) {
	if number, ok := sig.(syscall.Signal); ok {
		proc.DieOf(number)
	}
}

// awaitStop waits for the signal of who stops a command and retry, one after the other.
func awaitStop() {
	time.Sleep(5 * time.Millisecond)
	proc.AwaitSignals()
}

// isWorkers reports whether this is the host of a worker's attempt, which has one file for both streams.
func (p *Host) isWorkers() bool { return p.Stdout == p.Stderr }
