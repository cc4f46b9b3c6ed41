package stdio

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// Blocking reads and writes one of retry's own streams. A process that shares it may set O_NONBLOCK at any time, as
// node and ssh do. Where an os.File fails with EAGAIN then, Blocking waits.
type Blocking struct{ File *os.File }

// Read implements io.Reader.
func (b Blocking) Read(p []byte) (int, error) {
	for {
		n, err := b.File.Read(p)
		if !errors.Is(err, syscall.EAGAIN) {
			return n, err
		}
		await(readable, b.File)
	}
}

// Write implements io.Writer.
func (b Blocking) Write(p []byte) (written int, err error) {
	for {
		n, err := b.File.Write(p[written:])
		written += n
		if !errors.Is(err, syscall.EAGAIN) {
			return written, err
		}
		await(Writable, b.File)
	}
}

// errTruncated is the error of a socket of messages, where the rest of one is lost that is longer than a read.
var errTruncated = errors.New("it is a socket of messages, and one is too long to be kept" +
	"\nhint: --stdin auto has the command read it")

// Reader reads one of retry's own streams to its end, once.
type Reader struct {
	File     *os.File
	messages bool  // it is a socket that keeps messages apart
	own      bool  // it reads a file at an offset of its own, and leaves that of the file to others
	at       int64 // that offset
	taken    bool  // it has read something, and has taken the stream
}

// NewReader returns a reader that moves the offset of a file.
func NewReader(f *os.File) *Reader { return &Reader{File: f, messages: hasMessages(f)} }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	switch {
	case r.own:
		return r.readAt(p)
	case r.messages:
		n, err = receive(r.File, p)
	default:
		n, err = Blocking{r.File}.Read(p)
	}
	if n > 0 && !r.taken && !r.messages && kindOf(r.File) == kindStream { // of messages each is whole
		r.taken = true
		takenHere.Store(r.File)
		setTaken(r.File, true)
	}
	return n, err
}

// Settle moves the offset of a file to where it was read to, unless it is there.
func (r *Reader) Settle() {
	if at, err := r.File.Seek(0, io.SeekCurrent); r.own && err == nil && at < r.at {
		_, _ = r.File.Seek(r.at, io.SeekStart)
	}
}

func (r *Reader) readAt(p []byte) (int, error) {
	n, err := r.File.ReadAt(p, r.at)
	r.at += int64(n)
	if n > 0 {
		return n, nil // an error comes again
	}
	return 0, err
}

// CheckEnd returns an error where the stream has not given what it had when that began. A file of sysfs ends before its
// size.
func (r *Reader) CheckEnd(begun os.FileInfo, terminal bool) error {
	if terminal && !IsTerminal(r.File) { // read(2) reports its end then
		return errClosedTerminal
	}
	var err error
	at := r.at
	if !r.own {
		at, err = r.File.Seek(0, io.SeekCurrent)
	}
	now, err2 := r.File.Stat()
	switch {
	case err != nil || err2 != nil || begun == nil || !begun.Mode().IsRegular():
	case at < begun.Size() && now.Size() < begun.Size():
		return ErrCut
	case now.Size() == begun.Size() && !now.ModTime().Equal(begun.ModTime()):
		return errRewritten
	}
	return nil
}

// blockingMode remembers whether a stream blocks: an attempt that sets O_NONBLOCK may leave it so, and the next one
// would take EAGAIN for the end of its input.
type blockingMode struct{ known, nonblocking bool }

// restore sets the stream back to how the first call has found it.
func (m *blockingMode) restore(f *os.File) {
	now := isNonblocking(f)
	switch {
	case !m.known:
		m.known, m.nonblocking = true, now
	case now && !m.nonblocking:
		setBlocking(f)
	}
}

// await waits until a file is ready. It asks in steps, since a signal can end one.
func await(isReady func(*os.File, time.Duration) bool, f *os.File) {
	for !isReady(f, time.Second) {
		continue
	}
}
