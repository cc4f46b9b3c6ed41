package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Epoch has nanoseconds, which the journal drops.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// Tester is what a test, a fuzz target and a rapid check have in common.
type Tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// Task ids are unique among all processes of a test; the system uses process ids again.
var (
	thisProcess = rand.Uint32()
	lastID      atomic.Int64
)

// AtOnce is the decision that the next attempt follows at once.
var AtOnce = task.Decision{Verdict: task.VerdictRetry}

// NewTask returns a task that no journal knows yet.
func NewTask() *task.Task {
	id := fmt.Sprintf("%08x-0000-7000-8000-%012x", thisProcess, lastID.Add(1))
	return &task.Task{
		ID: id, Kind: task.KindCommand, Command: []string{"false"}, Directory: "/tmp", Policy: task.DefaultPolicy(),
		IdempotencyKey: "key of " + id, CreatedAt: Epoch, Status: task.Pending, History: task.History{Began: Epoch},
	}
}

// Claimed does what the runner does: it claims the next attempt, and moves the task where that succeeds.
func Claimed(j state.Store, t *task.Task, now time.Time) error {
	if err := j.Claim(context.Background(), t, now); err != nil {
		return err
	}
	t.Status, t.Reason, t.NextAttemptAt = task.InFlight, "", time.Time{}
	t.AttemptCount++
	return nil
}

// Chained ends the attempt in flight and begins the next one, in one write.
func Chained(j state.Store, t *task.Task, o task.Outcome, now time.Time) error {
	moved, a := *t, task.Attempt{Number: t.AttemptCount, StartedAt: Epoch, Outcome: o, Decision: AtOnce}
	moved.ApplyDecision(a, now)
	if err := j.RecordAndClaim(context.Background(), &moved, a, now); err != nil {
		return err
	}
	moved.Status, moved.Reason, moved.NextAttemptAt = task.InFlight, "", time.Time{}
	moved.AttemptCount++
	*t = moved
	return nil
}

// Recorded ends the attempt in flight. If the write is refused, the task stays as it was.
func Recorded(j state.Store, t *task.Task, o task.Outcome, d task.Decision, now time.Time) error {
	moved, a := *t, task.Attempt{Number: t.AttemptCount, StartedAt: Epoch, Outcome: o, Decision: d}
	moved.ApplyDecision(a, now)
	if err := j.Record(context.Background(), &moved, a); err != nil {
		return err
	}
	*t = moved
	return nil
}

// Settled writes a decision about a task that waits.
func Settled(j state.Store, t *task.Task, d task.Decision, now time.Time) error {
	moved := *t
	moved.Move(d, now)
	if err := j.Settle(context.Background(), &moved, d); err != nil {
		return err
	}
	*t = moved
	return nil
}

// Must fails the test on an error.
func Must(t Tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// InFlight returns a new task with its first attempt in flight.
func InFlight(t Tester, j state.Store) *task.Task {
	t.Helper()
	tk := NewTask()
	Must(t, Claimed(j, tk, Epoch))
	return tk
}

// Waiting returns a new task that waits for its second attempt.
func Waiting(t Tester, j state.Store) *task.Task {
	t.Helper()
	tk := InFlight(t, j)
	Must(t, Recorded(j, tk, Exit(1), RetryIn(time.Minute), Epoch))
	return tk
}

// RetryIn is the decision that the next attempt follows after a delay.
func RetryIn(d time.Duration) task.Decision {
	return task.Decision{Verdict: task.VerdictRetry, Delay: d}
}

// Stored reads a task back by its id.
func Stored(t Tester, j state.Store, id string) *task.Task {
	t.Helper()
	tk, err := j.Find(context.Background(), id)
	Must(t, err)
	return tk
}

// List returns tasks, newest first, without their attempts.
func List(j state.Store, f state.Filter) (tasks []*task.Task, err error) {
	for t, err := range j.All(context.Background(), f) {
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// Attempts returns the attempts of a task.
func Attempts(t Tester, j state.Store, number int64) []task.Attempt {
	t.Helper()
	list, err := j.Attempts(context.Background(), number)
	Must(t, err)
	return list
}

// ShowTask writes what the journal has to remember of a task, so that two can be compared and told apart by eye.
func ShowTask(t *task.Task) string {
	return fmt.Sprintf("%d %s name=%q env=%q %s %q in %q key=%q created %s requeued %s after %d | %s %q attempt %d, finished %s, next %s",
		t.Number, t.ID, t.Name, t.Environment, t.Kind, t.Command, t.Directory, t.IdempotencyKey, ShowTime(t.CreatedAt), ShowTime(t.RequeuedAt), t.RequeuedAfter,
		t.Status, t.Reason, t.AttemptCount, ShowTime(t.FinishedAt), ShowTime(t.NextAttemptAt))
}

// ShowAttempt writes what the store has to remember of an attempt.
func ShowAttempt(a task.Attempt) string {
	o, d := a.Outcome, a.Decision
	return fmt.Sprintf("#%d at %s: exit %d signal %q error %q message %q took %s | %q delay %s shortened %v",
		a.Number, ShowTime(a.StartedAt), o.Exit, o.Signal, o.Error, o.Message, o.Duration.Truncate(time.Microsecond),
		d.Verdict, d.Delay.Truncate(time.Microsecond), d.Shortened)
}

// ShowTime writes a time as exactly as a store keeps it.
func ShowTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000")
}

// Show writes a task and its attempts.
func Show(tk *task.Task, attempts []task.Attempt) string {
	lines := []string{ShowTask(tk)}
	for _, a := range attempts {
		lines = append(lines, ShowAttempt(a))
	}
	return strings.Join(lines, "\n")
}

// Exit is the outcome of a command that exits with a code.
func Exit(code int) task.Outcome { return task.Outcome{Exit: code, Duration: time.Second} }

// Decisions of each kind.
var (
	Interrupted = task.Decision{Verdict: task.VerdictInterrupted}
	Succeeded   = task.Decision{Verdict: task.VerdictSucceeded}
	Failed      = task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible}
	Exhausted   = task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
	Cancelled   = task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}
)

// Write is one of the writes that a task's owner makes.
type Write struct {
	Name string
	Do   func(state.Store, *task.Task) error
}

// Claiming claims the next attempt.
func Claiming() Write {
	return Write{"claim", func(j state.Store, t *task.Task) error { return Claimed(j, t, Epoch) }}
}

// Recording ends the attempt in flight.
func Recording(d task.Decision) Write {
	return Write{"record " + string(d.Verdict), func(j state.Store, t *task.Task) error { return Recorded(j, t, Exit(3), d, Epoch) }}
}

// Chaining ends the attempt in flight and claims the next one in the same write.
func Chaining() Write {
	return Write{"chain", func(j state.Store, t *task.Task) error { return Chained(j, t, Exit(3), Epoch) }}
}

// Settling writes a decision about a task that waits.
func Settling(d task.Decision) Write {
	return Write{"settle " + string(d.Verdict), func(j state.Store, t *task.Task) error { return Settled(j, t, d, Epoch) }}
}

// Cancelling cancels the task.
func Cancelling() Write {
	return Write{"cancel", func(j state.Store, t *task.Task) error { return j.Cancel(context.Background(), t.Number, Epoch) }}
}

// Apply writes one after the other, as somebody does who has the newest copy.
func Apply(t *testing.T, j state.Store, tk *task.Task, writes ...Write) {
	t.Helper()
	for _, w := range writes {
		if err := w.Do(j, tk); err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
	}
}

// Refuses checks that a late write is refused with ErrNotOwner and leaves no trace.
func Refuses(t *testing.T, j state.Store, stale task.Task, w Write) {
	t.Helper()
	before := snapshot(t, j)
	if err := w.Do(j, &stale); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("%s: got %v", w.Name, err)
	}
	if after := snapshot(t, j); after != before {
		t.Errorf("%s changed\n%s\nto\n%s", w.Name, before, after)
	}
}

// Expect compares a task and its attempts with what Find, All, Unfinished and Attempts return.
func Expect(t *testing.T, j state.Store, want *task.Task, list ...task.Attempt) {
	t.Helper()
	got := Stored(t, j, want.ID)
	if g, w := Show(got, Attempts(t, j, got.Number)), Show(want, list); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	newest, err := List(j, state.Filter{Limit: 1})
	Must(t, err)
	if len(newest) != 1 || ShowTask(newest[0]) != ShowTask(want) {
		t.Errorf("List(1) returned %d tasks, the first one %s", len(newest), ShowTask(newest[0]))
	}
	if last := list[len(list)-1]; ShowAttempt(newest[0].Last) != ShowAttempt(last) {
		t.Errorf("List(1) gives as the last attempt\n%s\nwant\n%s", ShowAttempt(newest[0].Last), ShowAttempt(last))
	}
	unfinished, err := j.Unfinished(t.Context())
	Must(t, err)
	if open := len(unfinished) > 0 && unfinished[len(unfinished)-1].ID == want.ID; open == want.Status.Finished() {
		t.Errorf("%s: listed as unfinished: %v", want.Status, open)
	}
}

// Named returns a new task with a name, its first attempt in flight.
func Named(t Tester, j state.Store, name string) *task.Task {
	t.Helper()
	tk := NewTask()
	tk.Name = name
	Must(t, Claimed(j, tk, Epoch))
	return tk
}

// CatchingUp writes the end of a task whose owner continued without the store.
func CatchingUp() Write {
	return Write{"catch up", func(j state.Store, t *task.Task) error {
		t.Status = task.InFlight
		a := task.Attempt{Number: t.AttemptCount, StartedAt: Epoch, Outcome: Exit(0), Decision: Succeeded}
		t.ApplyDecision(a, Epoch)
		return j.CatchUp(context.Background(), t)
	}}
}

// snapshot is the text of all tasks and attempts in a store.
func snapshot(t Tester, j state.Store) string {
	t.Helper()
	tasks, err := List(j, state.Filter{})
	Must(t, err)
	var texts []string
	for _, tk := range tasks {
		list := Attempts(t, j, tk.Number)
		texts = append(texts, Show(tk, list))
		for _, a := range list {
			texts = append(texts, fmt.Sprintf("process %q stdout %q stderr %q", a.Process, a.Outcome.Stdout, a.Outcome.Stderr))
		}
	}
	return strings.Join(texts, "\n")
}
