package state

import (
	"time"

	"github.com/10f93571/retry/runner"
)

// modelTask is what the journal has to hold of a task.
type modelTask struct {
	task     runner.Task
	attempts []runner.Attempt
}

// ends are where a verdict leads; those of a task that waits are fewer. They are written out here, not asked of the runner.
var (
	attemptEnds = map[runner.Verdict]runner.Status{
		runner.VerdictSucceeded: runner.Succeeded, runner.VerdictRetry: runner.Pending, runner.VerdictFailed: runner.Failed,
		runner.VerdictExhausted: runner.Exhausted, runner.VerdictCancelled: runner.Cancelled, runner.VerdictInterrupted: runner.Pending,
	}
	waitEnds = map[runner.Verdict]runner.Status{
		runner.VerdictExhausted: runner.Exhausted, runner.VerdictCancelled: runner.Cancelled, runner.VerdictInterrupted: runner.Pending,
	}
)

func (m *modelTask) last() *runner.Attempt { return &m.attempts[len(m.attempts)-1] }

// stands reports whether a writer's copy is what the journal has: only then may it write.
func (m *modelTask) stands(w *runner.Task, status runner.Status) bool {
	return m.task.Status == status && m.task.AttemptCount == w.AttemptCount
}

// claim is the model's side of a claim.
func (m *modelTask) claim(now time.Time) {
	m.task.Status, m.task.Reason, m.task.NextAttemptAt = runner.InFlight, "", time.Time{}
	m.task.AttemptCount++
	m.attempts = append(m.attempts, runner.Attempt{
		Number: m.task.AttemptCount, StartedAt: now, Outcome: runner.Outcome{Exit: runner.NoExit},
	})
}

func (m *modelTask) decide(status runner.Status, d runner.Decision, now time.Time) {
	m.task.Status, m.task.Reason = status, d.Reason
	m.task.FinishedAt, m.task.NextAttemptAt = now, time.Time{}
	if status == runner.Pending {
		m.task.FinishedAt, m.task.NextAttemptAt = time.Time{}, now.Add(d.Delay)
	}
}

// record is the model's side of Record. A writer that comes too late may add the outcome of an attempt that was cancelled.
func (m *modelTask) record(w *runner.Task, o runner.Outcome, d runner.Decision, now time.Time) (taken bool) {
	if m.stands(w, runner.InFlight) {
		m.last().Outcome, m.last().Decision = o, d
		m.decide(attemptEnds[d.Verdict], d, now)
		return false
	}
	a := &m.attempts[w.AttemptCount-1]
	if a.Decision.Verdict == runner.VerdictCancelled && a.Outcome.Exit == runner.NoExit {
		a.Outcome = o
	}
	return true
}

func (m *modelTask) requeue(now time.Time) {
	m.task.Status, m.task.Reason = runner.Pending, ""
	m.task.FinishedAt, m.task.NextAttemptAt = time.Time{}, now
	m.task.RequeuedAt, m.task.RequeuedAfter = now, m.task.AttemptCount
}

func (m *modelTask) cancel(now time.Time) (finished bool) {
	if m.task.Status != runner.Pending && m.task.Status != runner.InFlight {
		return true
	}
	if m.task.Status == runner.InFlight {
		m.last().Decision = runner.Decision{Verdict: runner.VerdictCancelled}
	}
	m.decide(runner.Cancelled, cancelled, now)
	return false
}
