// Package stdio gives the attempts of a command their standard streams: a stdin that can be read again by each attempt,
// and an output that is captured, and held until the task has ended.
package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// Stdin gives each attempt of one task its standard input.
type Stdin interface {
	// Open prepares the stdin of the next attempt.
	Open() (*Input, error)
}

// Input is the stdin of one attempt.
type Input struct {
	File    *os.File     // what the process gets
	Bind    func(int)    // called at once after the start, with what kill(2) takes for the processes; nil: it need not be
	Held    []uintptr    // what a guard holds, in this order, lest the input ends with retry; nil: there is none
	Fed     func()       // called when all of the input was written to a pipe of ours
	Started func()       // must be called when the process has been started
	Ended   func()       // called when the process has ended, before its output is read to the end; nil: it need not be
	Leave   func()       // called before Close where the command has ended by itself; nil: it need not be
	Close   func() error // must be called when the process has ended; may return a *StdinError or ErrRead

	// Wait is called before Close where another attempt may follow. It asks whether what this one has left has a file
	// open. nil: it need not be called.
	Wait func(open func(os.FileInfo) bool)
}

// ErrRead says that an attempt, or what one has left running, has read from a stdin that nobody can read again.
var ErrRead = errors.New("cannot be read again")

var (
	errUnseen = errors.New("what an earlier attempt may have read from stdin cannot be read again" +
		"\nhint: --stdin replay gives every attempt the same")
	errClosedTerminal = errors.New("the terminal on stdin was closed")
	errHungUp         = fmt.Errorf("%w: from now on attempts find nothing there", errClosedTerminal)
	errRewritten      = errors.New("the file on stdin has changed meanwhile") // while a resume waited, or it was read
)

// ErrCut says that a file has lost a part of what it had when an attempt began to read it.
var ErrCut = errors.New("the file on stdin was cut short")

func nothing() {}

func noError() error { return nil }

// NullStdin gives every attempt an empty stdin.
type NullStdin struct{}

// Open implements Stdin.
func (NullStdin) Open() (*Input, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return &Input{File: null, Started: nothing, Close: null.Close}, nil
}

// InheritedStdin gives the attempts retry's own stdin. The first attempt shares it, as a command without retry would.
// If it is a file, the later attempts read from the same offset again.
type InheritedStdin struct {
	File *os.File
	Rest bool // each attempt gets what the earlier ones have left of it
	// Known is a file as it was when a resume looked at it, which may wait until it begins; zero: none did.
	Known task.Source
	// Signalled is that of ReplayedStdin; nil: nobody knows.
	Signalled func(ended time.Time) bool
	// AwaitSignals returns when all signals are in that came before. It is called once, where a second attempt finds that
	// a stream has no writer any more; nil: they are.
	AwaitSignals func()
	// Lost is called once where an attempt would get a part of the input, or another one than the first; may be nil.
	Lost func(error)

	info     os.FileInfo // of the file; nil until it is looked at
	opened   bool
	start    int64 // the offset at which the first attempt began to read a file
	size     int64 // of the file, when an attempt has begun last
	modified int64 // the file's time of change then
	mode     blockingMode
	haveOpen func(os.FileInfo) bool // asks whether what an attempt has left running has the file open
	state    streamState            // of a stream, when it was last looked at
	reads    *readWatch             // of a stream
	unknown  bool                   // the system does not show whether the stream was read
	terminal bool                   // it is one
}

// Open implements Stdin.
func (s *InheritedStdin) Open() (*Input, error) {
	again := s.opened
	s.opened = true
	in := &Input{File: s.File, Started: nothing, Close: noError}
	s.mode.restore(s.File)
	if again && s.AwaitSignals != nil && s.kind() == kindStream && s.isShut() {
		s.AwaitSignals()
		s.AwaitSignals = nil
	}
	if s.isSignalled() && s.isShut() {
		err := &StdinError{fmt.Errorf("read stdin: %w", errSignalled)}
		s.warn(err)
		return nil, err
	}
	if s.Rest {
		return in, nil
	}
	switch s.kind() {
	case kindFile:
		in.Wait, in.Close = s.wait, s.noteGrowth
		if err := s.checkSize(); err != nil {
			return nil, err
		}
		at, _ := s.File.Seek(0, io.SeekCurrent)
		// What an attempt has left running may read at any time. Only with a lock that was taken through it, and where
		// nobody reads, it stays shared.
		if again && (at != s.start || !isLocked(s.File) || s.isHeld()) {
			return s.rewind(at)
		}
		s.start = at
	case kindStream:
		if s.reads == nil {
			s.reads = watchReads(s.File)
		} else {
			shared := again && s.reads.shared()    // first: what reads and ends meanwhile is seen by the check
			if err := s.checkReads(); err != nil { // by what an attempt has left running
				return nil, fmt.Errorf("what an attempt has left running has read from stdin, which %w", err)
			}
			s.unknown = s.unknown || shared
		}
		s.state = s.reads.begin() // more may have come since
		in.Close, in.Wait = s.checkReads, s.reads.wait
		if again && s.unknown {
			s.warn(errUnseen)
		}
	case kindOther:
		terminal := IsTerminal(s.File)
		if s.terminal && !terminal {
			s.warn(errHungUp)
		}
		s.terminal = terminal
	}
	return in, nil
}

// Unsettled reports whether the writer of a stream may be about to end by a signal: nobody knows yet whether what it
// has left is all.
func (s *InheritedStdin) Unsettled() bool { return s.isSignalled() && !s.isShut() }

func (s *InheritedStdin) isSignalled() bool {
	return s.Signalled != nil && s.kind() == kindStream && s.Signalled(time.Now())
}

func (s *InheritedStdin) isShut() bool { return isShut(s.File) || stateOf(s.File).ended }

// checkSize returns ErrRead where a file has become shorter since an earlier attempt, or was written anew: the next one
// would get a part of it, or another input. One that grows, as a log does, is read on.
func (s *InheritedStdin) checkSize() error {
	info, err := s.File.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	known, modified := s.Known, info.ModTime().UnixNano()
	s.Known = task.Source{}
	switch {
	case info.Size() < max(s.size, known.Size):
		return fmt.Errorf("%w, and %w", ErrCut, ErrRead)
	case known.Modified != 0 && (known.Size != info.Size() || known.Modified != modified),
		s.modified != 0 && s.size == info.Size() && s.modified != modified:
		return fmt.Errorf("%w, and %w", errRewritten, ErrRead)
	}
	s.size, s.modified = info.Size(), modified
	return nil
}

// noteGrowth takes note of what others have appended to a file while an attempt ran, which may have read it.
func (s *InheritedStdin) noteGrowth() error {
	if info, err := s.File.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > s.size {
		s.size, s.modified = info.Size(), info.ModTime().UnixNano()
	}
	return nil
}

func (s *InheritedStdin) warn(err error) {
	if s.Lost != nil {
		s.Lost(err)
		s.Lost = nil
	}
}

func (s *InheritedStdin) wait(haveOpen func(os.FileInfo) bool) { s.haveOpen = haveOpen }

// isHeld reports whether what an attempt has left running may read the file beside the next one.
func (s *InheritedStdin) isHeld() bool { return s.haveOpen != nil && s.haveOpen(s.info) }

// kind looks at the file once: what a descriptor is never changes.
func (s *InheritedStdin) kind() kind {
	if s.info == nil {
		info, err := s.File.Stat()
		if err != nil {
			return kindOther
		}
		s.info = info
	}
	return kindIn(s.info)
}

// checkReads returns ErrRead if somebody may have read from the stream since the last check.
func (s *InheritedStdin) checkReads() error {
	before := s.state
	s.state = stateOf(s.File)
	read, known := s.reads.seen(s.state)
	switch {
	case read, s.state.available < before.available:
		return ErrRead
	case s.info.Mode()&os.ModeSocket != 0 && wasReset(s.File): // the next attempt would take that for an end
		return ErrRead
	case known, before.ended:
		return nil
	case s.state.available > before.available: // and what came first may have been read
		return ErrRead
	}
	s.unknown = true
	return nil
}

// Release ends what the attempts' stdin needs beyond their own.
func (s *InheritedStdin) Release() {
	if s.reads != nil {
		s.reads.end()
	}
}

// rewind opens the file anew at the start offset. The shared offset moves only forward, when the attempt has ended: a
// loop around retry may be reading from the same descriptor, and must not see a line twice. That holds whoever else has
// the file open: what an earlier attempt has left reading goes on from there, as without retry.
func (s *InheritedStdin) rewind(at int64) (*Input, error) {
	private, err := openAt(s.File, s.start)
	before := int64(0) // bytes of the file that private lacks
	switch {
	case errors.Is(err, errors.ErrUnsupported), err != nil && at == s.start: // nothing else can be done, or need be
		if s.isHeld() {
			s.warn(errUnseen)
		}
		_, err := s.File.Seek(s.start, io.SeekStart)
		return &Input{File: s.File, Started: nothing, Close: s.noteGrowth, Wait: s.wait}, err
	case err != nil: // this user may not, as after sudo
		before = s.start
		if private, err = copyFrom(s.File, before); err != nil {
			return nil, fmt.Errorf("the file on stdin can be neither opened again nor copied, and %w: %w", ErrRead, err)
		}
	}
	return &Input{File: private, Started: nothing, Wait: s.wait, Close: func() error {
		read, err := private.Seek(0, io.SeekCurrent)
		read += before
		shared, err2 := s.File.Seek(0, io.SeekCurrent)
		if err == nil && err2 == nil && read > shared {
			_, _ = s.File.Seek(read, io.SeekStart)
		}
		return errors.Join(s.noteGrowth(), private.Close())
	}}, nil
}

// ErrTaken says that a retry has read from a stream to keep that, and that its run has not succeeded.
var ErrTaken = errors.New("an earlier retry has read from this pipe, and has not succeeded: what is left is a part" +
	"\nhint: run the whole pipeline again; cat | retry … takes what is left")

// Reader returns what reads the first attempt's stdin. If that is a file, its own offset does not move, so that another
// reader of it, such as a loop around retry, misses nothing: also where this user may not open it again. Of a stream
// that is taken nothing is read, unless Rest says so.
func (s *InheritedStdin) Reader() (*Reader, error) {
	r := NewReader(s.File)
	switch {
	case s.kind() == kindStream && !s.Rest && isTaken(s.File):
		return nil, ErrTaken
	case s.kind() != kindFile:
		return r, nil
	}
	at, err := s.begin()
	r.own, r.at = true, at
	return r, err
}

// takenHere is the stream that this process has taken; nil for none.
var takenHere atomic.Pointer[os.File]

// GiveBack ends that a stream is taken which this process has read: its run has succeeded.
func GiveBack() {
	if f := takenHere.Load(); f != nil {
		setTaken(f, false)
	}
}

// begin returns the offset of a file at which the next attempt begins to read.
func (s *InheritedStdin) begin() (int64, error) {
	if s.opened {
		return s.start, nil
	}
	return s.File.Seek(0, io.SeekCurrent)
}

// openAt opens a file again, with an offset of its own.
func openAt(f *os.File, offset int64) (*os.File, error) {
	private, err := reopen(f)
	if err != nil {
		return nil, err
	}
	if _, err := private.Seek(offset, io.SeekStart); err != nil {
		_ = private.Close()
		return nil, err
	}
	return private, nil
}

// copyFrom returns a copy of what a file has from an offset on, or an error where that is cut or rewritten meanwhile.
func copyFrom(f *os.File, offset int64) (*os.File, error) {
	begun, err := f.Stat()
	if err != nil {
		return nil, err
	}
	private, err := spool.Temporary("")
	if err != nil {
		return nil, err
	}
	source := &Reader{File: f, own: true, at: offset}
	if _, err = io.Copy(private, source); err == nil {
		err = source.CheckEnd(begun, false)
	}
	if err == nil {
		_, err = private.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = private.Close()
		return nil, err
	}
	return private, nil
}

type kind int

const (
	kindOther  kind = iota // a terminal, a device, or closed: reading it again may give anything
	kindFile               // can be read again from an offset
	kindStream             // what was read is gone
)

func kindOf(f *os.File) kind {
	info, err := f.Stat()
	if err != nil {
		return kindOther
	}
	return kindIn(info)
}

func kindIn(info os.FileInfo) kind {
	switch {
	case info.Mode().IsRegular(), info.Mode().Type() == os.ModeDevice: // the latter is a block device
		return kindFile
	case info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return kindStream
	}
	return kindOther
}

// streamState is what a pipe or a socket shows without being read.
type streamState struct {
	available int  // bytes that can be read
	ended     bool // there is no writer any more
}

// pipeCapacity is what a pipe holds, unless somebody has changed that. It is also the size of one read.
const pipeCapacity = 64 << 10
