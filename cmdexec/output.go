package cmdexec

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// Output is where the attempts of one task write. Plain streams are handed to the process as they are; those that are held or
// captured pass through a pipe.
type Output struct {
	Stdout, Stderr *os.File
	Mode           task.OutputMode
	Limit          int64 // bytes that OutputFinal holds of one attempt; 0 = no limit
	Capture        task.CaptureMode
	Tail           int                           // bytes of the end of a stream that are captured; 0: what is kept
	Temporary      func() (*os.File, error)      // makes a file for what is held, where it is much
	Outgrown       func(t *task.Task, at int64)  // called when an attempt has outgrown the limit
	Unheld         func(t *task.Task, why error) // called when there is no room to hold it under OutputFinal

	current *attemptOutput // what Release is about
}

// attemptOutput is the output of one attempt.
type attemptOutput struct {
	stdout, stderr *os.File // what the process gets
	taps           []*tap
	outTap, errTap *tap // of taps; nil where a stream is plain, the same where both are one file
	passing        *passing
	stopped        bool // a signal came before everything was taken in: the taps may be at work for ever
}

// passing is what the taps of one attempt share: whether they hold what they get, or pass it on.
type passing struct {
	mutex    sync.Mutex
	on       bool
	limit    int64
	held     int64
	outgrown func(at int64)
	unheld   func(why error) // nil where what cannot be held is lost
}

// open prepares the streams of the next attempt.
func (o *Output) open(t *task.Task) (*attemptOutput, error) {
	a := &attemptOutput{stdout: o.Stdout, stderr: o.Stderr, passing: &passing{on: !o.Mode.Held()}}
	if o.Mode == task.OutputFinal {
		a.passing.limit = o.Limit
		a.passing.outgrown = func(at int64) { o.Outgrown(t, at) }
		a.passing.unheld = func(why error) { o.Unheld(t, why) }
	}
	o.current = a
	both := o.Mode.Held() || o.Capture == task.CaptureBoth
	if !both && o.Capture != task.CaptureStderr {
		return a, nil
	}
	var err error
	if sameFile(o.Stdout, o.Stderr) { // one pipe, or what was written would change its order
		if a.errTap, err = o.tap(a, o.Stdout); err == nil {
			a.stdout, a.stderr = a.errTap.write, a.errTap.write
			a.outTap = a.errTap
		}
		return a, err
	}
	if a.errTap, err = o.tap(a, o.Stderr); err != nil {
		return a, err
	}
	a.stderr = a.errTap.write
	if both {
		if a.outTap, err = o.tap(a, o.Stdout); err != nil {
			a.abandon()
			return a, err
		}
		a.stdout = a.outTap.write
	}
	return a, nil
}

func (o *Output) tap(a *attemptOutput, to *os.File) (*tap, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &tap{
		read: read, write: write, to: to, passing: a.passing,
		held: spool.New(spool.MemoryLimit, o.Temporary), tail: spool.NewTail(max(o.Tail, task.Kept)), done: make(chan struct{}),
	}
	a.taps = append(a.taps, t)
	return t, nil
}

// sameFile reports whether two streams lead to one file.
func sameFile(f, g *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := g.Stat()
	return err == nil && os.SameFile(a, b)
}

// begin starts to take in what the process writes, now that it has the other ends.
func (a *attemptOutput) begin() {
	for _, t := range a.taps {
		_ = t.write.Close()
		go t.run()
	}
}

// abandon closes what no process will use.
func (a *attemptOutput) abandon() {
	for _, t := range a.taps {
		_ = t.write.Close()
		_ = t.read.Close()
	}
	a.taps = nil
}

// lastWords is how long the taps may go on once a signal has asked to stop.
const lastWords = 100 * time.Millisecond

// end takes in what the process wrote before it ended, and no more: what it left behind may write for ever. After a signal that
// asks to stop it does not wait long, since whoever reads our stdout may have stopped reading.
func (a *attemptOutput) end(signals <-chan os.Signal, o *task.Outcome) {
	for _, t := range a.taps {
		t.stop()
	}
	for _, t := range a.taps {
		if o.Stop == nil {
			o.Stop = awaitOrStop(t.done, signals)
		}
		if o.Stop != nil && !within(t.done, lastWords) {
			a.stopped = true
			t.fail(task.ErrStopped)
		}
	}
	if a.outTap != nil {
		o.Stdout = a.outTap.tail.String()
	}
	if a.errTap != nil {
		o.Stderr = a.errTap.tail.String()
	}
	o.Final = (a.passing.outgrown != nil && a.passing.isOn()) || errors.Is(a.lost(), syscall.EPIPE)
}

// within reports whether done is closed before that much time has passed.
func within(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// awaitOrStop waits for done. It returns the signal that asked to stop meanwhile.
func awaitOrStop(done <-chan struct{}, signals <-chan os.Signal) os.Signal {
	for {
		select { // what came when it was done is for whoever listens next
		case <-done:
			return nil
		default:
		}
		select {
		case <-done:
			return nil
		case sig := <-signals:
			if task.Stops(sig) {
				return sig
			}
		}
	}
}

// Release passes on what is held of the last attempt, or drops it, as the mode has it. It implements runner.Executor.
func (o *Output) Release(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	a := o.current
	o.current = nil
	if a == nil || a.stopped {
		return nil, a.lost()
	}
	defer a.drop()
	if o.Mode == task.OutputSuccess && a.lost() != nil {
		return nil, a.lost() // half of it could pass for the whole
	}
	if !o.passesOn(a, t.Status) {
		return nil, a.lost()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, tap := range a.taps {
			tap.release()
		}
	}()
	if sig := awaitOrStop(done, signals); sig != nil {
		return sig, task.ErrStopped
	}
	return nil, a.lost()
}

// Holds reports whether Release would pass anything on. It implements runner.Holder.
func (o *Output) Holds(t *task.Task) bool {
	a := o.current
	return a != nil && !a.stopped && o.passesOn(a, t.Status)
}

func (o *Output) passesOn(a *attemptOutput, s task.Status) bool {
	return a.holds() && (o.Mode.PassesOn(s) || a.passing.isOn())
}

// holds reports whether there is something to pass on, now that the taps are done.
func (a *attemptOutput) holds() bool {
	return slices.ContainsFunc(a.taps, func(t *tap) bool { return t.released < t.held.Size() })
}

// lost returns why what was written to stdout could not be passed on, or what was written to either could not be held. That nobody
// reads stderr any more costs the caller nothing.
func (a *attemptOutput) lost() error {
	if a == nil {
		return nil
	}
	for _, t := range a.taps {
		err := t.failure()
		if unheld := (*unheldError)(nil); err != nil && (t == a.outTap || errors.As(err, &unheld)) {
			return err
		}
	}
	return nil
}

func (a *attemptOutput) drop() {
	for _, t := range a.taps {
		_ = t.held.Close()
	}
}
