package cli

import (
	"runtime/debug"
	"time"

	"github.com/10f93571/retry/runner"
)

// leanWait is a wait that is worth giving memory back for: reading some of it again afterwards costs well under a millisecond.
const leanWait = time.Second

// lean gives memory back while a task waits for long: what earlier attempts left to be collected, and the program's code, which the
// kernel maps all around what has run.
type lean struct {
	runner.Observer
	leaned int // the count of attempts at the wait that it was given back for
}

// Waiting implements runner.Observer.
func (l *lean) Waiting(t *runner.Task, left time.Duration) time.Duration {
	again := l.Observer.Waiting(t, left)
	if left >= leanWait && l.leaned != t.AttemptCount {
		l.leaned = t.AttemptCount
		debug.FreeOSMemory()
		dropCode()
	}
	return again
}
