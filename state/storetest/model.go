package storetest

import (
	"time"

	"github.com/10f93571/retry/task"
)

// modelTask is what the journal has to hold of a task.
type modelTask struct {
	task     task.Task
	attempts []task.Attempt
	current  *heldClaim // the present one, of a queue; nil for none
}

// ends are where a verdict leads; those of a task that waits are fewer. They are written out here, not asked of the
// runner.
var (
	attemptEnds = map[task.Verdict]task.Status{
		task.VerdictSucceeded: task.Succeeded, task.VerdictRetry: task.Pending, task.VerdictFailed: task.Failed,
		task.VerdictExhausted: task.Exhausted, task.VerdictCancelled: task.Cancelled, task.VerdictInterrupted: task.Pending,
	}
	waitEnds = map[task.Verdict]task.Status{
		task.VerdictExhausted: task.Exhausted, task.VerdictCancelled: task.Cancelled, task.VerdictInterrupted: task.Pending,
	}
)

func (m *modelTask) last() *task.Attempt { return &m.attempts[len(m.attempts)-1] }

// stands reports whether a writer's copy is what the journal has: only then may it write.
func (m *modelTask) stands(w *task.Task, status task.Status) bool {
	return m.task.Status == status && m.task.AttemptCount == w.AttemptCount
}

// claim is the model's side of a claim.
func (m *modelTask) claim(now time.Time) {
	m.task.Status, m.task.Reason, m.task.NextAttemptAt = task.InFlight, "", time.Time{}
	m.task.AttemptCount++
	m.attempts = append(m.attempts, task.Attempt{
		Number: m.task.AttemptCount, StartedAt: now, Outcome: task.Outcome{Exit: task.NoExit},
	})
}

func (m *modelTask) decide(status task.Status, d task.Decision, now time.Time) {
	m.task.Status, m.task.Reason = status, d.Reason
	m.task.FinishedAt, m.task.NextAttemptAt = now, time.Time{}
	if status == task.Pending {
		m.task.FinishedAt, m.task.NextAttemptAt = time.Time{}, now.Add(d.Delay)
	}
}

// record is the model's side of Record. A writer that comes too late may add the outcome of an attempt that was
// cancelled.
func (m *modelTask) record(w *task.Task, o task.Outcome, d task.Decision, now time.Time) (taken bool) {
	if m.stands(w, task.InFlight) {
		m.last().Outcome, m.last().Decision = o, d
		m.decide(attemptEnds[d.Verdict], d, now)
		return false
	}
	a := &m.attempts[w.AttemptCount-1]
	if a.Decision.Verdict == task.VerdictCancelled && a.Outcome.Exit == task.NoExit {
		a.Outcome = o
	}
	return true
}

func (m *modelTask) requeue(now time.Time) {
	m.task.Status, m.task.Reason = task.Pending, ""
	m.task.FinishedAt, m.task.NextAttemptAt = time.Time{}, now
	m.task.RequeuedAt, m.task.RequeuedAfter = now, m.task.AttemptCount
}

func (m *modelTask) cancel(now time.Time) (finished bool) {
	if m.task.Status != task.Pending && m.task.Status != task.InFlight {
		return true
	}
	if m.task.Status == task.InFlight {
		m.last().Decision = task.Decision{Verdict: task.VerdictCancelled}
	}
	m.decide(task.Cancelled, Cancelled, now)
	return false
}
