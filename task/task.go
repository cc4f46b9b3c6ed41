// Package task holds the values of retry (Task, Attempt, Outcome, Policy, Condition, History) and its pure decisions:
// Decide says what follows an outcome, Transitions which status may follow which. It does no I/O and reads no clock.
package task

import (
	"errors"
	"slices"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// Kind says what a task executes.
type Kind string

// KindCommand is the kind of a task that runs a command. Every other kind has a Target. Lists of conditions have words
// of their own for calls of gRPC.
const (
	KindCommand Kind = "command"
	KindGRPC    Kind = "grpc"
)

// Status is where a task stands. docs/state-machine.md draws how one leads to another.
type Status string

// The statuses of a task. Interrupted is not one of them: it is a Pending or InFlight task whose owner is dead.
const (
	Pending   Status = "PENDING"
	InFlight  Status = "IN_FLIGHT"
	Succeeded Status = "SUCCEEDED"
	Exhausted Status = "EXHAUSTED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
)

// Finished reports whether no attempt of the task will ever follow.
func (s Status) Finished() bool {
	return s != Pending && s != InFlight
}

// Reason says why a task ended, or waits, without success; empty where there is nothing to explain.
type Reason string

// The reasons of a task.
const (
	ReasonAttempts    Reason = "attempts"
	ReasonBudget      Reason = "budget"
	ReasonCrashes     Reason = "crashes"
	ReasonNotEligible Reason = "not eligible"
	ReasonStdin       Reason = "stdin"     // what an attempt has read of its stdin is gone
	ReasonAmbiguous   Reason = "ambiguous" // the request may have taken effect, and is not safe to repeat
	ReasonExpired     Reason = "expired"   // its idempotency key is too old for the server to know
	ReasonDeferred    Reason = "deferred"  // it waits, for longer than a process should: the server said until when
	ReasonCancelled   Reason = "cancelled"
	ReasonHangup      Reason = "hangup" // it was interrupted, since its terminal was closed: somebody chose to end it
)

// Queue says who may carry a task.
type Queue int

// The queues.
const (
	QueueNone   Queue = iota // the process that made it, or a resume
	QueueWorker              // a worker
	QueueShared              // a worker or a resume: it was requeued or deferred, and no process owns it
)

// ErrNotOwner is what a Journal returns when a write came too late: the task was cancelled or taken over by another
// process.
var ErrNotOwner = errors.New("the task was cancelled or taken over by another process")

// Task is one thing to get done, with the resolved copy of its policy.
type Task struct {
	Number         int64 // the journal's count of tasks; 0 where there is no journal
	ID             string
	Parent         string // the id of the task whose command made this one; empty for most
	Name           string // given by --id; of the unfinished tasks only one has it
	Once           bool   // its success is remembered for ever
	Kind           Kind
	Command        []string
	Target         Target // what it sends; nil for a command, and for a damaged target
	Directory      string
	Environment    []string // kept for a resume: NAME=value, or NAME for a variable that was not set
	Policy         Policy
	Options        Options
	IdempotencyKey string
	Queue          Queue
	Partition      string   // whose task it is: partitions share the slots of workers; empty for most
	Tags           []string // to find it by
	Payload        string   // a hash of what was given with an idempotency key; empty where retry made the key up
	CreatedAt      time.Time
	RequeuedAt     time.Time // when it was last given fresh attempts; zero for most
	RequeuedAfter  int       // the number of its last attempt before that

	Status        Status
	Reason        Reason
	AttemptCount  int
	FinishedAt    time.Time // zero until finished
	NextAttemptAt time.Time // zero unless Pending
	History       History
	Last          Attempt // the latest attempt that was decided on; Number 0 before the first
	ClaimedAhead  bool    // the journal has claimed its next attempt already, together with the latest outcome
	Worker        int64   // the number of the worker that carries it; 0 for none
	Nonce         int64   // of that worker's claim; each has another
	Damage        error   // why the journal's copy cannot be read; such a task cannot be continued
}

// ShownCommand is the argument vector without its secrets.
func (t *Task) ShownCommand() []string { return text.MaskCommand(t.Command, t.Options.Mask) }

// Host returns where the task's requests go, as example.org:8080; empty for a command.
func (t *Task) Host() string {
	if t.Target == nil {
		return ""
	}
	return t.Target.Host()
}

// Deadline returns the end of the task's budget; ok is false where it has none.
func (t *Task) Deadline() (deadline time.Time, ok bool) {
	if t.Policy.Budget == 0 {
		return time.Time{}, false
	}
	return t.History.Began.Add(t.Policy.Budget), true
}

// Expiry returns the time after which no attempt may begin, since the idempotency key is too old; zero for never.
func (t *Task) Expiry() time.Time {
	if t.Target == nil || t.Target.KeyLifetime() == 0 {
		return time.Time{}
	}
	return t.CreatedAt.Add(t.Target.KeyLifetime())
}

// BeginNow makes the budget of a task that was not attempted yet, and the age of its key, begin now. Before a deadline
// the task stays as it is: that does not move.
func (t *Task) BeginNow(now time.Time) {
	if t.Policy.Deadline {
		return
	}
	t.CreatedAt = now
	t.History.Began, t.History.Expires = now, t.Expiry()
}

// KeepsInput reports whether the stdin is kept for the task until it ends.
func (t *Task) KeepsInput() bool {
	return t.Options.Stdin == StdinReplay || t.Target != nil && t.Target.ReadsStdin()
}

// Requeued reports whether the task was requeued and no attempt has followed yet.
func (t *Task) Requeued() bool {
	return !t.RequeuedAt.IsZero() && t.AttemptCount == t.RequeuedAfter
}

// Began is when the task was made, or last given fresh attempts.
func (t *Task) Began() time.Time {
	if t.RequeuedAt.IsZero() {
		return t.CreatedAt
	}
	return t.RequeuedAt
}

// MaxAttempts is the highest number that an attempt can have; 0 for no limit. An interrupted attempt has a number too,
// but does not count against the limit.
func (t *Task) MaxAttempts() int {
	if t.Policy.Attempts == 0 {
		return 0
	}
	return t.RequeuedAfter + t.Policy.Attempts + t.History.Interrupted
}

// BeginAttempt moves the task into its next attempt.
func (t *Task) BeginAttempt() {
	t.Status, t.Reason, t.ClaimedAhead = InFlight, "", false
	t.NextAttemptAt = time.Time{}
	t.AttemptCount++
}

// ApplyDecision records an attempt and moves the task as its decision says.
func (t *Task) ApplyDecision(a Attempt, now time.Time) {
	t.History = t.History.After(&t.Policy, a.Outcome, a.Decision)
	t.Last = a
	t.Move(a.Decision, now)
}

// Move applies a decision to the task's status alone.
func (t *Task) Move(d Decision, now time.Time) {
	t.Status, t.Reason = d.Verdict.Status(), d.Reason
	t.NextAttemptAt, t.FinishedAt = time.Time{}, time.Time{}
	if t.Status.Finished() {
		t.FinishedAt = now
	} else {
		t.NextAttemptAt = now.Add(d.Delay)
	}
}

// Unsafe reports whether the task is a request that is not safe to repeat.
func (t *Task) Unsafe() bool { return t.Target != nil && !t.Target.Safe() }

// Crashed is the outcome of an attempt whose owner died: a request may have taken effect by then.
func (t *Task) Crashed() Outcome {
	o := Crashed()
	if t.Unsafe() {
		o.Reply = &Reply{Default: Eligibility{Class: ClassFatal, Ambiguous: true}}
	}
	return o
}

// EndsByCrash reports whether the attempt in flight was the last one if its owner has died.
func (t *Task) EndsByCrash() bool {
	return t.Status == InFlight && decideCrash(t.History, t.Crashed()).Verdict.Status().Finished()
}

// MayHaveLeft reports whether processes of the task may run though no process carries it: those of an attempt that was
// cut off, or of one that began after its last one, while the journal could not be written.
func (t *Task) MayHaveLeft() bool {
	unbegun := t.AttemptCount == t.RequeuedAfter
	return t.Last.CutOff() || unbegun || t.Last.Decision.Verdict == VerdictRetry
}

// EndedCutOff reports whether the task has ended without success though its last attempt did not end by itself, or was
// cancelled before the next one: a later task of the same work stands for it. A budget that ends in a wait may have been
// ended by the run itself, as any other.
func (t *Task) EndedCutOff() bool {
	switch t.Status {
	case Exhausted:
		return t.Last.Outcome.IsCrash() || t.Last.Decision.Verdict == VerdictInterrupted
	case Failed:
		return t.Reason == ReasonAmbiguous || t.Reason == ReasonStdin && t.Last.CutOff()
	case Cancelled:
		return t.AttemptCount == 0 || t.Last.Decision.Verdict == VerdictRetry || t.Last.CutOff()
	}
	return false
}

// MayBeDone reports whether a request has ended without success, and may have taken effect, so that another one would
// do it again, with a key that the server has not seen, or has forgotten. One that was cancelled, or requeued, has
// attempts that say what became of them.
func (t *Task) MayBeDone(attempts []Attempt) bool {
	switch {
	case t.Target == nil || t.AttemptCount == 0:
		return false
	case t.Reason == ReasonExpired:
		return true
	case t.Target.Safe():
		return false
	case t.Status == Cancelled:
		return slices.ContainsFunc(attempts, Attempt.mayBeDone)
	case t.RequeuedAfter > 0 && t.Status != Succeeded && slices.ContainsFunc(attempts, Attempt.wasSent):
		for _, a := range slices.Backward(attempts) { // a requeue was to send it again, and that one counts
			if a.wasSent() {
				return a.mayBeDone()
			}
		}
	}
	return t.Status == Failed && t.Reason == ReasonAmbiguous
}

// wasSent reports whether any of a request may have been sent.
func (a Attempt) wasSent() bool {
	return a.Outcome.IsCrash() || a.Outcome.Reply != nil && a.Outcome.Reply.Written > 0
}

// mayBeDone reports whether the attempt of an unsafe request may have taken effect without a success.
func (a Attempt) mayBeDone() bool {
	switch o := a.Outcome; {
	case o.IsCrash():
		return true
	case !a.wasSent():
		return false
	case a.Decision.Verdict == VerdictFailed: // a status of 4xx says that nothing was done
		return o.Reply.Status/100 != 4
	}
	return a.Decision.Verdict == VerdictCancelled
}

// EndDecision is the decision that ended a task.
func (t *Task) EndDecision() Decision {
	if t.Status == Failed {
		return Decision{Verdict: VerdictFailed, Reason: t.Reason}
	}
	return Decision{Verdict: VerdictExhausted, Reason: t.Reason}
}

// CatchUpWithClock keeps the wait and the budget from getting longer when the clock was set back, before this process
// began or while it runs. A deadline stays where the clock shows it.
func (t *Task) CatchUpWithClock(now time.Time) {
	if latest := now.Add(t.History.Delay); t.NextAttemptAt.After(latest) {
		t.NextAttemptAt = latest
	}
	if !t.Policy.Deadline {
		t.History.Began = now.Add(min(0, t.History.Began.Sub(now))) // has a monotonic reading, as now has
	}
}
