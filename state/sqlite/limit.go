package sqlite

import (
	"context"
	"sync"
	"time"
)

// Limit is context.WithTimeout, but that its timer begins only when somebody waits for it. A journal that nobody else writes to makes
// no one wait, and a timer wakes a thread.
func Limit(parent context.Context, most time.Duration) (ctx context.Context, cancel func()) {
	l := &limited{Context: parent, deadline: time.Now().Add(most)}
	return l, l.cancel
}

type limited struct {
	context.Context
	deadline time.Time

	mutex sync.Mutex
	timed context.Context // once somebody waits
	end   context.CancelFunc
}

// Deadline implements context.Context.
func (l *limited) Deadline() (time.Time, bool) {
	if earlier, ok := l.Context.Deadline(); ok && earlier.Before(l.deadline) {
		return earlier, true
	}
	return l.deadline, true
}

// Done implements context.Context.
func (l *limited) Done() <-chan struct{} {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.timed == nil {
		l.timed, l.end = context.WithDeadline(l.Context, l.deadline)
	}
	return l.timed.Done()
}

// Err implements context.Context.
func (l *limited) Err() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case l.timed != nil:
		return l.timed.Err()
	case l.Context.Err() == nil && !time.Now().Before(l.deadline):
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// cancel ends what waits; who never did needs no end.
func (l *limited) cancel() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.timed != nil {
		l.end()
	}
}
