package stdio

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// ReplayedStdin gives every attempt the same bytes. It reads the source only when an attempt asks for more, passes on
// what comes, and keeps it for the next attempt.
type ReplayedStdin struct {
	Lost func(error) // called where an attempt cannot have its stdin, or gets a part of it; may be nil
	// Signalled reports, EndGrace after the end of a pipe, whether a signal that retry outlives may have ended its writer.
	// Afterwards Stopped reports whether a signal has asked retry to stop. nil: nobody knows.
	Signalled func(ended time.Time) bool
	Stopped   func() bool

	source   *Reader // nil if everything is kept already
	kept     *spool.Spool
	complete func() error // called once, when everything is kept
	terminal bool         // the source was one

	info      os.FileInfo   // of a source that is a file, as it was when it was first read
	reading   chan struct{} // holds one element while a feed reads the source, perhaps for ever
	position  int64         // how many bytes were read from the source; guarded by reading
	mutex     sync.Mutex    // guards the fields below
	ended     bool          // the source has no more
	endedAt   time.Time     // when that was seen; zero where everything was kept before
	judged    bool          // it was asked what the end is worth
	cutOff    bool          // what has stopped retry may have ended the writer
	broken    error         // reading the source failed: no attempt gets the rest
	unkept    error         // keeping what was read failed: no later attempt gets it
	completed sync.WaitGroup
}

// Replay keeps what it reads from source in kept, and calls complete when that is everything.
func Replay(source *Reader, kept *spool.Spool, complete func() error) *ReplayedStdin {
	return &ReplayedStdin{
		source: source, kept: kept, complete: complete, terminal: IsTerminal(source.File), reading: make(chan struct{}, 1),
	}
}

// ReplayKept replays what an earlier run has kept.
func ReplayKept(kept *spool.Spool) *ReplayedStdin {
	return &ReplayedStdin{kept: kept, position: kept.Size(), ended: true, reading: make(chan struct{}, 1)}
}

// Wait waits for complete, if the source has ended.
func (r *ReplayedStdin) Wait() {
	r.mutex.Lock() // orders it before or after a concurrent end of the source
	defer r.mutex.Unlock()
	r.completed.Wait()
}

// Open implements Stdin.
func (r *ReplayedStdin) Open() (*Input, error) {
	if err := cmp.Or(r.lost(), r.changed()); err != nil {
		return nil, r.tell(err)
	}
	file, feed, err := newFeed()
	if err != nil {
		return nil, err
	}
	a := &feeding{over: make(chan struct{})}
	a.end = sync.OnceValue(func() error {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.done = true
		return r.incomplete()
	})
	in := &Input{File: file, Held: feed.held(), Fed: nothing}
	in.Leave = func() {
		if !a.ended.Load() && feed.hasReader() {
			_ = r.tell(errLeftReader)
		}
	}
	in.Bind = func(processes int) { a.target = processes; feed.bind(processes) }
	in.Started = func() {
		_ = file.Close() // with a reader of our own, we would not notice that the process has closed its stdin
		go r.feed(feed, a, func() { in.Fed() })
	}
	in.Ended = func() { _ = a.end() }
	in.Close = func() error {
		err := a.end() // what fails later is nothing to a command that has ended by itself
		close(a.over)
		_, _ = feed.Close(), file.Close()
		feed.end()
		if err != nil {
			return r.tell(err)
		}
		return nil
	}
	return in, nil
}

// feeding is what the feed of an attempt knows of that.
type feeding struct {
	target int           // what kill takes for the processes
	over   chan struct{} // closed when the attempt is over
	ended  atomic.Bool   // all of the input was written
	mutex  sync.Mutex    // guards done
	done   bool          // the process has ended: its number may be that of another one
	end    func() error  // notes that, and returns the error of its input until then
	reads  bool          // it has read the source, and not only what was kept
}

// kill kills the attempt. Where that has ended, it waits until the attempt is over: what it has left sees no end of the
// input before.
func (a *feeding) kill() {
	a.mutex.Lock()
	done := a.done
	if !done {
		kill(a.target)
	}
	a.mutex.Unlock()
	if done {
		<-a.over
	}
}

const (
	// EndGrace is how long the end of a pipe is held back: what stops retry may have ended the writer a moment before.
	EndGrace = 20 * time.Millisecond
	// readGrace is how long a command may go on to read that has been asked to stop, before it is killed.
	readGrace = time.Minute
)

var errLeftReader = errors.New("what the command has left running still reads stdin, and gets only a part of it" +
	"\nhint: have the command wait for it, as setsid -w does; or use --stdin auto")

func (r *ReplayedStdin) tell(err error) error {
	if r.Lost != nil {
		r.Lost(err)
	}
	return err
}

// incomplete returns an error if an attempt got only a part of stdin.
func (r *ReplayedStdin) incomplete() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.broken != nil {
		return &StdinError{fmt.Errorf("read stdin: %w", r.broken)}
	}
	return nil
}

// lost returns an error if another attempt cannot have the same stdin as the first.
func (r *ReplayedStdin) lost() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.unkept != nil {
		return &StdinError{fmt.Errorf("its stdin could not be kept for another attempt: %w", r.unkept)}
	}
	return nil
}

// changed returns an error if the rest of a file, which no attempt has read yet, may belong to other contents than what
// was kept of it.
func (r *ReplayedStdin) changed() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.source == nil || r.ended {
		return nil
	}
	info, err := r.source.File.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if r.info == nil || r.kept.Size() == 0 {
		r.info = info
	}
	if info.Size() == r.info.Size() && info.ModTime().Equal(r.info.ModTime()) {
		return nil
	}
	return &StdinError{errors.New("the file on stdin has changed since an earlier attempt read from it")}
}

// checkEnd returns an error where the source has not ended as it should, and no attempt may take that for an end. Where
// it has changed meanwhile, this attempt has read what it would have read by itself, but no other one gets the same.
func (r *ReplayedStdin) checkEnd() error {
	changed := r.changed()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	err := r.source.CheckEnd(r.info, r.terminal)
	if errors.Is(err, errRewritten) || err == nil && changed != nil {
		r.unkept = cmp.Or(r.unkept, errRewritten)
		return nil
	}
	return err
}

// feed writes stdin to the pipe of an attempt, until the pipe has no reader any more or the attempt is over. Where the
// rest cannot be had, it kills the attempt, which would take the end of the pipe for the end of its input.
func (r *ReplayedStdin) feed(pipe *feedPipe, a *feeding, fed func()) {
	defer func() { _ = pipe.Close() }()
	buffer := make([]byte, pipeCapacity)
	for offset := int64(0); ; {
		n, err := r.next(buffer, offset, a)
		if n > 0 {
			if _, err := pipe.Write(buffer[:n]); err != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if !r.awaitGrace(a) {
				return
			}
			signalled, cutOff := r.judge()
			if signalled {
				r.breakOff(errSignalled)
				a.kill()
				return
			}
			a.ended.Store(true)
			if cutOff { // half of an input: the command must not see its end
				select {
				case <-a.over:
				case <-time.After(readGrace):
					a.kill()
				}
				return
			}
			fed()
			return
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			a.kill()
			return
		}
		offset += int64(n)
	}
}

// errSignalled is the error of a pipe that has ended with a signal to all of a job, as batch systems send one: it may
// be half of an input.
var errSignalled = errors.New("a signal came as its writer ended, which may have ended that, too")

// awaitGrace returns EndGrace after a pipe has ended, and at once for what is no pipe. It returns false where the
// attempt is over by then.
func (r *ReplayedStdin) awaitGrace(a *feeding) bool {
	r.mutex.Lock()
	endedAt := r.endedAt
	r.mutex.Unlock()
	if endedAt.IsZero() {
		return true
	}
	select {
	case <-a.over:
		return false
	case <-time.After(time.Until(endedAt.Add(EndGrace))):
		return true
	}
}

// judge reports whether a signal to all of a job may have ended the writer of a pipe, or the signal that has asked
// retry to stop: timeout(1), a CI and the keys of a terminal send that to the writer, too, which may take its time to
// end. What comes after the first look has not ended it.
func (r *ReplayedStdin) judge() (signalled, cutOff bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.endedAt.IsZero() && !r.judged {
		r.judged = true
		signalled = r.Signalled != nil && r.Signalled(r.endedAt)
		r.cutOff = r.Stopped != nil && r.Stopped()
	}
	return signalled, r.cutOff
}

// breakOff keeps the rest of the input from every attempt.
func (r *ReplayedStdin) breakOff(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.broken = err
}

// next reads what follows offset: from the kept bytes, or at their end from the source. The feed of an earlier attempt
// may be reading the source: then it waits until that has read something, or until the attempt is over.
func (r *ReplayedStdin) next(p []byte, offset int64, a *feeding) (int, error) {
	if offset < r.kept.Size() {
		return r.readKept(p, offset)
	}
	select {
	case r.reading <- struct{}{}:
	case <-a.over:
		return 0, os.ErrClosed
	}
	defer func() { <-r.reading }()
	if offset < r.kept.Size() { // the other feed has kept more meanwhile
		return r.readKept(p, offset)
	}
	if err := r.exhausted(offset); err != nil {
		return 0, err
	}
	if !a.reads && offset > 0 { // after what an earlier attempt has read, which may be long ago
		if err := r.changed(); err != nil {
			r.finish(err)
			return 0, err
		}
	}
	a.reads = true
	n, err := r.source.Read(p)
	if errors.Is(err, io.EOF) {
		err = cmp.Or(r.checkEnd(), err)
	}
	r.position += int64(n)
	if n > 0 {
		r.keep(p[:n])
	}
	if err != nil {
		r.finish(err)
	}
	return n, err
}

func (r *ReplayedStdin) readKept(p []byte, offset int64) (int, error) {
	n, err := r.kept.ReadAt(p, offset)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // somebody has truncated the file
	}
	r.breakOff(err)
	return 0, err
}

// exhausted returns an error if the source has nothing for an attempt that has read up to offset.
func (r *ReplayedStdin) exhausted(offset int64) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case r.broken != nil:
		return r.broken
	case offset != r.position: // the bytes between went to an earlier attempt and could not be kept
		r.broken = r.unkept
		return r.broken
	case r.ended:
		return io.EOF
	}
	return nil
}

func (r *ReplayedStdin) keep(p []byte) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.unkept == nil {
		_, r.unkept = r.kept.Write(p)
	}
}

// finish handles the end of the source. It calls complete in the background, since that waits for the disk.
func (r *ReplayedStdin) finish(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ended = errors.Is(err, io.EOF)
	if r.info == nil { // a pipe, a socket or a terminal
		r.endedAt = time.Now()
	}
	switch {
	case !r.ended:
		r.broken = err
	case r.unkept == nil && r.complete != nil:
		r.completed.Go(func() { _ = r.complete() }) // if it fails, a resume reports that the stdin is missing
	}
}

// StdinError says that an attempt cannot have its stdin, or got only a part of it.
type StdinError struct{ error }

func (e *StdinError) Unwrap() error { return e.error }

// Outcome is the outcome of such an attempt, however its command ended. Another attempt would not get its stdin either.
func (e *StdinError) Outcome() task.Outcome {
	return task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: e.Error()}
}
