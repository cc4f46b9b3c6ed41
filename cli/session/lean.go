package session

import (
	"runtime/debug"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// leanWait is a wait that is worth giving memory back for: reading some of it again afterwards costs a millisecond or two. Of many
// shorter waits one is, now and then.
const (
	leanWait  = time.Second / 2
	leanEvery = 10 * time.Second
)

// lean gives memory back while a task waits for long: what earlier attempts left to be collected, and the program's code, which the
// kernel maps all around what has run.
type lean struct {
	runner.Observer
	leaned int       // the count of attempts at the wait that it was given back for
	last   time.Time // when that was
}

// Waiting implements runner.Observer.
func (l *lean) Waiting(t *task.Task, left time.Duration) time.Duration {
	again := l.Observer.Waiting(t, left)
	if l.leaned != t.AttemptCount && (left >= leanWait || time.Since(l.last) >= leanEvery) {
		l.leaned, l.last = t.AttemptCount, time.Now()
		debug.FreeOSMemory()
		dropCode()
	}
	return again
}
