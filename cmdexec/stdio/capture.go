package stdio

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/10f93571/retry/internal/spool"
)

// capture reads what an attempt writes to one stream. It remembers the end, and either holds the output or passes it
// on.
type capture struct {
	read, write *os.File // the pipe that the process writes to
	destination *os.File
	forwarding  *forwarding
	held        *spool.Spool
	tail        *spool.Tail
	done        chan struct{} // closed when run has returned

	flushed int64 // how many of the held bytes were passed on
	mutex   sync.Mutex
	err     error // the first failure to hold output or to pass it on
}

// captureSize is the size of one read: as much as a pipe holds.
const captureSize = 64 << 10

// run reads until the last writer has closed the pipe, or until stop is called.
func (c *capture) run() {
	defer close(c.done)
	defer func() { _ = c.read.Close() }()
	buffer := make([]byte, captureSize)
	for {
		n, err := c.read.Read(buffer)
		if !c.handle(buffer[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.drain(buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// stop ends run after it has read what is in the pipe now.
func (c *capture) stop() {
	_ = c.read.SetReadDeadline(time.Unix(1, 0))
}

// handle holds or passes on what was read. It returns false if the destination has no reader any more: then run closes
// the pipe, and the process gets the SIGPIPE that it would have got without retry.
func (c *capture) handle(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	_, _ = c.tail.Write(p)
	if c.forwarding.admit(len(p)) {
		return c.forward(p)
	}
	if c.failure() != nil {
		return true // the rest is lost, but the command can go on
	}
	n, err := c.held.Write(p)
	if err == nil {
		return true
	}
	if c.forwarding.enableAfter(err) {
		return c.forward(p[n:])
	}
	c.fail(&holdError{err})
	return true
}

// forward writes the held output and p to the destination.
func (c *capture) forward(p []byte) bool {
	c.flush()
	if c.failure() != nil {
		return false
	}
	_, err := c.destination.Write(p)
	c.fail(err)
	return err == nil
}

// flush writes the rest of the held output to the destination.
func (c *capture) flush() {
	if c.flushed == c.held.Size() {
		return
	}
	n, err := c.held.WriteFrom(c.flushed, c.destination)
	c.flushed += n
	c.fail(err)
}

func (c *capture) fail(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *capture) failure() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.err
}

// holdError says that there was no room to hold all of the output.
type holdError struct{ cause error }

func (e *holdError) Error() string {
	cause := e.cause
	for inner := cause; inner != nil; inner = errors.Unwrap(inner) { // without the path of a temporary file
		cause = inner
	}
	return "there was no room to hold all of it: " + cause.Error() +
		"\nhint: hold it elsewhere with --state, or TMPDIR where no journal is kept; or see --output stream"
}

func (e *holdError) Unwrap() error { return e.cause }

// forwarding decides for the captures of one attempt whether output is held or passed on at once. Once enabled it stays
// so.
type forwarding struct {
	mutex         sync.Mutex
	enabled       bool
	limit         int64 // bytes to hold at most; 0 = no limit
	total         int64
	limitExceeded func(limit int64)
	holdFailed    func(reason error) // nil if output that cannot be held is lost
}

// admit counts n bytes more, and reports whether they are passed on at once: in stream mode, and when the limit is
// exceeded.
func (f *forwarding) admit(n int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.enabled {
		return true
	}
	f.total += int64(n)
	if f.limit > 0 && f.total > f.limit {
		f.enabled = true
		f.limitExceeded(f.limit)
	}
	return f.enabled
}

// enableAfter reports whether output is passed on from now on because it cannot be held.
func (f *forwarding) enableAfter(reason error) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.holdFailed != nil && !f.enabled {
		f.enabled = true
		f.holdFailed(reason)
	}
	return f.enabled
}

func (f *forwarding) isEnabled() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.enabled
}
