package cmdexec

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/10f93571/retry/internal/spool"
)

// tap takes what an attempt writes to a stream: it remembers the end, and passes the rest on or holds it.
type tap struct {
	read, write *os.File
	to          *os.File
	passing     *passing
	held        *spool.Spool
	tail        *spool.Tail
	done        chan struct{} // closed when nothing more is taken

	released int64 // how much of what was held is passed on
	mutex    sync.Mutex
	err      error // why something was not passed on
}

// tapSize is how much is read at a time: as much as a pipe holds.
const tapSize = 64 << 10

// run takes everything until the last writer is gone, or until stop.
func (t *tap) run() {
	defer close(t.done)
	defer func() { _ = t.read.Close() }()
	buffer := make([]byte, tapSize)
	for {
		n, err := t.read.Read(buffer)
		if !t.take(buffer[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.drain(buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// stop ends run once it has taken what is in the pipe now.
func (t *tap) stop() {
	_ = t.read.SetReadDeadline(time.Unix(1, 0))
}

// take handles what was read, and reports false where nobody wants more: then the process gets a SIGPIPE, as it would have had
// from the reader that has gone.
func (t *tap) take(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	_, _ = t.tail.Write(p)
	if t.passing.admits(len(p)) {
		return t.passOn(p)
	}
	if t.failure() != nil {
		return true // the rest is lost, and the command must not be
	}
	n, err := t.held.Write(p)
	if err == nil {
		return true
	}
	if t.passing.insteadOfHolding(err) {
		return t.passOn(p[n:])
	}
	t.fail(&unheldError{err})
	return true
}

// unheldError says that there was no room for what had to be held.
type unheldError struct{ cause error }

func (e *unheldError) Error() string {
	return "there was no room to hold all of it: " + cause(e.cause) + "\nhint: hold it elsewhere with --state, or TMPDIR where no journal is kept; or see --output stream"
}

func (e *unheldError) Unwrap() error { return e.cause }

// passOn writes to the stream itself, after what was held before.
func (t *tap) passOn(p []byte) bool {
	t.release()
	if t.failure() != nil {
		return false
	}
	_, err := t.to.Write(p)
	t.fail(err)
	return err == nil
}

// release writes what is held.
func (t *tap) release() {
	if t.released == t.held.Size() {
		return
	}
	n, err := t.held.WriteFrom(t.released, t.to)
	t.released += n
	t.fail(err)
}

func (t *tap) fail(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.err == nil {
		t.err = err
	}
}

func (t *tap) failure() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.err
}

// admits counts n bytes more and reports whether they are passed on at once: in stream mode, and after the attempt has outgrown
// what is held.
func (p *passing) admits(n int) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.on {
		return true
	}
	p.held += int64(n)
	if p.limit > 0 && p.held > p.limit {
		p.on = true
		p.outgrown(p.limit)
	}
	return p.on
}

// insteadOfHolding reports whether output is passed on from now on, since there is no room to hold it.
func (p *passing) insteadOfHolding(why error) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.unheld != nil && !p.on {
		p.on = true
		p.unheld(why)
	}
	return p.on
}

func (p *passing) isOn() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.on
}
