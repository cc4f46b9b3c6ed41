package stdio

import (
	"errors"
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
