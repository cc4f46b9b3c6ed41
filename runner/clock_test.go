package runner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/task"
)

// A clock that was set back since the task was stopped makes neither its wait nor its budget longer.
func TestAResumeAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(p *task.Policy) { p.Budget = 10 * time.Minute }, exit(1), exit(0))
		begun := time.Now()
		b.task.AttemptCount, b.task.History.Delay = 1, time.Minute
		b.task.NextAttemptAt = begun.Add(time.Hour + 30*time.Second)
		b.task.CreatedAt, b.task.History.Began = begun.Add(time.Hour), begun.Add(time.Hour)
		if _, err := b.Resume(t.Context(), b.task); err != nil || b.task.Status != task.Succeeded {
			t.Errorf("%v, %s", err, b.task.Status)
		}
		if waited := b.executor.begun.Sub(begun); waited != time.Minute {
			t.Errorf("waited for %v", waited)
		}
		if deadline, _ := b.task.Deadline(); !deadline.Equal(begun.Add(10 * time.Minute)) {
			t.Errorf("the deadline is %v after the resume", deadline.Sub(begun))
		}
	})
}
