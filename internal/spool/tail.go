package spool

import (
	"sync"
)

// Tail is an io.Writer that remembers the last bytes. It is safe for concurrent use.
type Tail struct {
	limit  int
	mutex  sync.Mutex
	buffer []byte
}

// NewTail returns a tail of at most limit bytes.
func NewTail(limit int) *Tail {
	return &Tail{limit: limit}
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.buffer = append(t.buffer, p[max(0, len(p)-t.limit):]...)
	if len(t.buffer) > 2*t.limit { // move it only now and then
		t.buffer = append(t.buffer[:0], t.last()...)
	}
	return len(p), nil
}

// String returns the last bytes.
func (t *Tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.last())
}

func (t *Tail) last() []byte {
	return t.buffer[max(0, len(t.buffer)-t.limit):]
}
