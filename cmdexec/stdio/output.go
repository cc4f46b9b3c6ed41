package stdio

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// Output says where the attempts of one task write. The process gets a plain stream as it is; a stream that is held or
// captured goes through a pipe.
type Output struct {
	Stdout, Stderr *os.File
	Mode           task.OutputMode
	Limit          int64 // bytes that OutputFinal holds of one attempt; 0 = no limit
	Capture        task.CaptureMode
	Apart          bool                     // conditions tell the streams apart, although both lead to one file
	Tail           int                      // size of the captured end of a stream, at least task.StoredTail
	Temporary      func() (*os.File, error) // creates a file for held output that is too large for memory
	BeforeFlush    func()                   // called before held output is written; nil for nothing
	modes          [2]blockingMode          // of stdout and stderr
	last           *Streams                 // of the attempt that Flush handles
	before         *Streams                 // of the one before, which is the last one where the next cannot begin

	// Called when OutputFinal begins to pass output on: since Limit is exceeded, or since there is no room to hold it.
	LimitExceeded func(t *task.Task, limit int64)
	// Called where what an attempt has left may write more, and whether it has written by then; may be nil.
	Cut        func(t *task.Task, written bool)
	HoldFailed func(t *task.Task, reason error)
}

// Streams are stdout and stderr of one attempt.
type Streams struct {
	Stdout, Stderr *os.File // what the process gets

	captures       []*capture
	stdout, stderr *capture // nil for a plain stream; the same one if both lead to one file
	forwarding     *forwarding
	cut            func(written bool)
	tellCut        func() // nil where nothing may write more
	abandoned      bool   // a signal asked to stop while a capture was blocked, perhaps for ever
}

// Open prepares the streams of the next attempt.
func (o *Output) Open(t *task.Task) (*Streams, error) {
	o.modes[0].restore(o.Stdout)
	o.modes[1].restore(o.Stderr)
	s := &Streams{Stdout: o.Stdout, Stderr: o.Stderr, forwarding: &forwarding{}, cut: func(written bool) {
		if o.Cut != nil {
			o.Cut(t, written)
		}
	}}
	s.forwarding.enabled.Store(!o.Mode.Held())
	if o.Mode == task.OutputFinal {
		s.forwarding.limit = o.Limit
		s.forwarding.limitExceeded = func(limit int64) { o.LimitExceeded(t, limit) }
		s.forwarding.holdFailed = func(reason error) { o.HoldFailed(t, reason) }
	}
	o.before.close()
	o.before, o.last = nil, s
	both := o.Mode.Held() || o.Capture == task.CaptureBoth
	if !both && o.Capture != task.CaptureStderr {
		return s, nil
	}
	var err, err2 error
	if !o.Apart && SameFile(o.Stdout, o.Stderr) { // only a single pipe keeps the order of the writes
		s.stdout, err = o.capture(s, &s.Stdout)
		s.stderr, s.Stderr = s.stdout, s.Stdout
	} else {
		s.stderr, err = o.capture(s, &s.Stderr)
		if both {
			s.stdout, err2 = o.capture(s, &s.Stdout)
		}
	}
	if err = cmp.Or(err, err2); err != nil {
		s.Discard()
	}
	return s, err
}

// capture puts a pipe in the place of a stream.
func (o *Output) capture(s *Streams, stream **os.File) (*capture, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &capture{
		read: read, write: write, destination: *stream, forwarding: s.forwarding, done: make(chan struct{}),
		held: spool.New(spool.MemoryLimit, o.Temporary), tail: spool.NewTail(max(o.Tail, task.StoredTail)),
	}
	*stream = write
	s.captures = append(s.captures, c)
	return c, nil
}

// SameFile reports whether two streams lead to one file.
func SameFile(f, g *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := g.Stat()
	return err == nil && os.SameFile(a, b)
}

// Begin starts to read the output. The process must have been started, since Begin closes its ends of the pipes.
func (s *Streams) Begin() {
	for _, c := range s.captures {
		_ = c.write.Close()
		go c.run()
	}
}

// Discard closes the streams of a process that was not started.
func (s *Streams) Discard() {
	for _, c := range s.captures {
		_ = c.write.Close()
		_ = c.read.Close()
	}
	s.captures = nil
}

const (
	// leftGrace is the time that End waits for what the process has left running: a shell does not wait for the tee of
	// its `exec > >(tee log)`.
	leftGrace = 500 * time.Millisecond
	// stopGrace is that time where a signal has asked to stop.
	stopGrace = 100 * time.Millisecond
)

// End reads what the process wrote before it ended, and completes the outcome. For the processes that the process
// left running it waits for leftGrace only, since they may write for ever; after a signal that asks to stop for
// stopGrace, and for as long again where the reader of retry's own stdout may have stopped reading.
func (s *Streams) End(signals <-chan os.Signal, o *task.Outcome) {
	for _, c := range s.captures {
		c.pending.Store(int64(stateOf(c.read).available))
	}
	grace := leftGrace
	if o.Stop != nil {
		grace = stopGrace
	}
	s.readFor(grace)
	cut, written := false, false
	for _, c := range s.captures {
		if o.Stop == nil {
			o.Stop = waitOrStop(c.done, signals)
			if o.Stop != nil {
				s.readFor(stopGrace)
			}
		}
		if o.Stop != nil {
			select {
			case <-c.done:
			case <-time.After(2 * stopGrace): // it is blocked
				s.abandoned = true
				c.fail(task.ErrStopped)
				continue
			}
		}
		cut, written = cut || c.cut, written || c.written
	}
	if cut && (o.Stop == nil || o.ExitCode() == 0) {
		s.tellCut = func() { s.cut(written) }
	}
	if s.stdout != nil {
		o.Stdout = s.stdout.tail.String()
	}
	if s.stderr != nil {
		o.Stderr = s.stderr.tail.String()
	}
	forwarded := s.forwarding.limitExceeded != nil && s.forwarding.enabled.Load()
	o.Final = forwarded || errors.Is(s.lost(), syscall.EPIPE)
}

// readFor has every capture end after a time, when it has read what is in its pipe then, or before with its last
// writer.
func (s *Streams) readFor(d time.Duration) {
	for _, c := range s.captures {
		if c.read.SetReadDeadline(time.Now().Add(d)) == nil { // which Windows cannot
			c.ended.CompareAndSwap(0, time.Now().UnixNano())
		}
	}
}

// waitOrStop waits until done is closed or a signal asks to stop. It returns that signal.
func waitOrStop(done <-chan struct{}, signals <-chan os.Signal) os.Signal {
	for {
		select { // if both are ready, the signal is left for the next reader
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

// Flush writes or drops the held output of the last attempt, depending on the mode and the status of the task. It
// implements runner.Executor.
func (o *Output) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	s := o.latest()
	o.last, o.before = nil, nil
	if s == nil || s.abandoned {
		return nil, s.lost()
	}
	passesOn := o.passesOn(s, t.Status)
	if s.tellCut != nil && (passesOn || t.Policy.Captures() != task.CaptureNone) { // else nobody misses it
		s.tellCut()
		s.tellCut = nil
	}
	if !passesOn && !t.Status.Finished() {
		o.before = s
		return nil, nil // what could not be held is not missed yet
	}
	defer s.close()
	if !passesOn {
		return nil, nil
	}
	partial := o.Mode == task.OutputSuccess && s.lost() != nil // a part of the output could be taken for all of it
	if partial || !s.hold() {
		return nil, s.lost()
	}
	if o.BeforeFlush != nil {
		o.BeforeFlush()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range s.captures {
			_ = c.flush() // which is remembered
		}
	}()
	if sig := waitOrStop(done, signals); sig != nil {
		return sig, task.ErrStopped
	}
	return nil, s.lost()
}

// HoldsOutput reports whether Flush would pass anything on. It implements runner.Executor.
func (o *Output) HoldsOutput(t *task.Task) bool {
	s := o.latest()
	return s != nil && !s.abandoned && s.hold() && o.passesOn(s, t.Status)
}

// latest returns the streams of the last attempt that has begun.
func (o *Output) latest() *Streams { return cmp.Or(o.last, o.before) }

// close frees what is held.
func (s *Streams) close() {
	if s == nil {
		return
	}
	for _, c := range s.captures {
		_ = c.held.Close()
	}
}

// passesOn reports whether output of an attempt is passed on at this status of the task.
func (o *Output) passesOn(s *Streams, status task.Status) bool {
	return o.Mode.PassesOn(status) || s.forwarding.enabled.Load()
}

// hold reports whether there is output that was not passed on yet.
func (s *Streams) hold() bool {
	return slices.ContainsFunc(s.captures, func(c *capture) bool { return c.flushed < c.held.Size() })
}

// lost returns why some output could not be passed on, or held. Of stderr it counts only what was held and a file has no
// room for: if nobody reads that any more, the caller loses nothing.
func (s *Streams) lost() error {
	if s == nil {
		return nil
	}
	for _, c := range s.captures {
		err := c.failure()
		full := func(reason error) bool { return errors.Is(err, reason) }
		noRoom := c.held.Size() > 0 && slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, full)
		if hold := (*holdError)(nil); err != nil && (c == s.stdout || errors.As(err, &hold) || noRoom) {
			return err
		}
	}
	return nil
}
