package stdio

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/spool"
)

// capture reads what an attempt writes to one stream. It keeps the end, and either holds the output or forwards it.
type capture struct {
	read, write *os.File // the pipe that the process writes to
	destination *os.File
	forwarding  *forwarding
	held        *spool.Spool
	tail        *spool.Tail
	done        chan struct{} // closed when run has returned
	ended       atomic.Int64  // when the process has, and what it left running may write for ever; 0: not yet
	pending     atomic.Int64  // bytes in the pipe then
	cut         bool          // that had the pipe open when run has ended
	written     bool          // and has written to it

	flushed int64                 // how many of the held bytes were forwarded
	err     atomic.Pointer[error] // the first error of holding or forwarding output
}

// lateLimit is how much is read at the most of what writes after the process has ended. A filter that writes at its
// end, such as sort, has all that it got.
const lateLimit = 64 << 20

// underWay is how long after the end of the process a read may be under way of what it wrote before.
const underWay = 5 * time.Millisecond

// run reads until the last writer has closed the pipe. Once the process has ended, it reads until a deadline at the
// longest.
func (c *capture) run() {
	defer close(c.done)
	defer func() { _ = c.read.Close() }()
	buffer := make([]byte, pipeCapacity)
	before, late := int64(0), int64(0) // bytes read since the process has ended: its own, and what was written later
	for {
		n, err := c.read.Read(buffer)
		if !c.handle(buffer[:n]) {
			return
		}
		if at := c.ended.Load(); at != 0 {
			own := int64(n)
			if time.Since(time.Unix(0, at)) > underWay {
				own = min(own, max(0, c.pending.Load()-before))
			}
			before, late = before+own, late+int64(n)-own
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && stateOf(c.read).ended { // it was the reader of the output that was late
			_ = c.read.SetReadDeadline(time.Time{})
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) || late > lateLimit {
			c.cut, c.written = true, late > 0
			c.drain(buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// handle holds or forwards what was read. It returns false if the destination has no reader any more: then run closes
// the pipe, and the process gets the SIGPIPE that it would have got without retry.
func (c *capture) handle(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	_, _ = c.tail.Write(p)
	if c.forwarding.add(len(p)) {
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
	for inner := err; inner != nil; inner = errors.Unwrap(inner) { // without the path of a temporary file
		err = inner
	}
	c.fail(&holdError{fmt.Errorf("there was no room to hold all of it: %w\nhint: hold it elsewhere with --state,"+
		" or TMPDIR where no journal is kept; or see --output stream", err)})
	return true
}

// forward writes the held output and p to the destination. What a full disk or a closed terminal refuses is lost, and
// the command goes on, as it could without retry.
func (c *capture) forward(p []byte) bool {
	err := c.flush()
	if err == nil {
		_, err = Blocking{c.destination}.Write(p)
		c.fail(err)
	}
	return err == nil || !errors.Is(err, syscall.EPIPE) && runtime.GOOS != "windows" // which has other errors for that
}

// flush writes the rest of the held output to the destination.
func (c *capture) flush() error {
	if c.flushed == c.held.Size() {
		return nil
	}
	n, err := c.held.WriteFrom(c.flushed, Blocking{c.destination})
	c.flushed += n
	c.fail(err)
	return err
}

// fail records an error of holding or forwarding output. Only the first one counts; nil is none.
func (c *capture) fail(err error) {
	if err != nil {
		c.err.CompareAndSwap(nil, &err)
	}
}

// failure returns the recorded error, or nil.
func (c *capture) failure() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// holdError says that there was no room to hold all of the output.
type holdError struct{ error }

func (e *holdError) Unwrap() error { return e.error }

// forwarding decides for both captures of an attempt whether output is held or forwarded at once. Once enabled it stays
// so.
type forwarding struct {
	enabled       atomic.Bool
	total         atomic.Int64 // bytes of both streams
	limit         int64        // bytes to hold at most; 0 = no limit
	limitExceeded func(limit int64)
	holdFailed    func(reason error) // nil if output that cannot be held is lost
}

// add counts n more bytes. It enables forwarding when the limit is exceeded, and reports whether it is enabled.
func (f *forwarding) add(n int) bool {
	if f.total.Add(int64(n)) > f.limit && f.limit > 0 && f.enabled.CompareAndSwap(false, true) {
		f.limitExceeded(f.limit)
	}
	return f.enabled.Load()
}

// enableAfter enables forwarding because output cannot be held, and reports whether it is enabled.
func (f *forwarding) enableAfter(reason error) bool {
	if f.holdFailed != nil && f.enabled.CompareAndSwap(false, true) {
		f.holdFailed(reason)
	}
	return f.enabled.Load()
}
