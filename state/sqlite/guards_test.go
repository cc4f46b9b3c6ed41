package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

var (
	interrupted = task.Decision{Verdict: task.VerdictInterrupted}
	succeeded   = task.Decision{Verdict: task.VerdictSucceeded}
	failed      = task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible}
	exhausted   = task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
	cancelled   = task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}
)

// write is one of the writes that a task's owner makes.
type write struct {
	name string
	do   func(*Journal, *task.Task) error
}

func claiming() write {
	return write{"claim", func(j *Journal, t *task.Task) error { return claimed(j, t, epoch) }}
}

func recording(d task.Decision) write {
	return write{"record " + string(d.Verdict), func(j *Journal, t *task.Task) error { return recorded(j, t, exit(3), d, epoch) }}
}

func chaining() write {
	return write{"chain", func(j *Journal, t *task.Task) error { return chained(j, t, exit(3), epoch) }}
}

func settling(d task.Decision) write {
	return write{"settle " + string(d.Verdict), func(j *Journal, t *task.Task) error { return settled(j, t, d, epoch) }}
}

func cancelling() write {
	return write{"cancel", func(j *Journal, t *task.Task) error { return j.Cancel(context.Background(), t.Number, epoch) }}
}

// apply writes one after the other, as somebody does who has the newest copy.
func apply(t *testing.T, j *Journal, tk *task.Task, writes ...write) {
	t.Helper()
	for _, w := range writes {
		if err := w.do(j, tk); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
}

// A writer whose copy is older than the journal changes nothing, whatever happened meanwhile.
func TestLateWritersAreRefused(t *testing.T) {
	takenOver := []write{recording(interrupted), claiming()}
	tests := []struct {
		name      string
		copied    func(tester, *Journal) *task.Task
		meanwhile []write
	}{
		{"in flight, succeeded meanwhile", inFlight, []write{recording(succeeded)}},
		{"in flight, failed meanwhile", inFlight, []write{recording(failed)}},
		{"in flight, waits meanwhile", inFlight, []write{recording(retryIn(time.Second))}},
		{"in flight, its crash noticed meanwhile", inFlight, takenOver[:1]},
		{"in flight, a later attempt in flight meanwhile", inFlight, takenOver},
		{"in flight, a later attempt followed at once", inFlight, []write{chaining()}},
		{"in flight, a later attempt succeeded meanwhile", inFlight, append(slices.Clone(takenOver), recording(succeeded))},
		{"in flight, a later attempt cancelled meanwhile", inFlight, append(slices.Clone(takenOver), cancelling())},
		{"waiting, cancelled meanwhile", waiting, []write{cancelling()}},
		{"waiting, exhausted meanwhile", waiting, []write{settling(exhausted)}},
		{"waiting, claimed meanwhile", waiting, []write{claiming()}},
		{"waiting, and again after a later attempt", waiting, []write{claiming(), recording(retryIn(time.Second))}},
		{"waiting, cancelled in a later attempt", waiting, []write{claiming(), cancelling()}},
	}
	late := map[task.Status][]write{
		task.InFlight: {
			recording(succeeded), recording(retryIn(time.Hour)), recording(failed), recording(exhausted), recording(cancelled), recording(interrupted),
			chaining(),
		},
		task.Pending: {claiming(), settling(interrupted), settling(exhausted), settling(cancelled)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := open(t)
			tk := test.copied(t, j)
			stale := *tk
			apply(t, j, tk, test.meanwhile...)
			for _, w := range late[stale.Status] {
				refuses(t, j, stale, w)
			}
		})
	}
}

// refuses checks that a late write is refused as ErrTaken and leaves no trace.
func refuses(t *testing.T, j *Journal, stale task.Task, w write) {
	t.Helper()
	before := dump(t, j)
	if err := w.do(j, &stale); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("%s: got %v", w.name, err)
	}
	if after := dump(t, j); after != before {
		t.Errorf("%s changed\n%s\nto\n%s", w.name, before, after)
	}
}

// What an attempt came to is worth knowing even where its task was cancelled under it; the cancellation stands.
func TestRecordAfterACancelAddsTheOutcomeAlone(t *testing.T) {
	for _, d := range []task.Decision{succeeded, {Verdict: task.VerdictRetry, Delay: time.Hour, Shortened: true}, failed, exhausted, cancelled, interrupted} {
		t.Run(string(d.Verdict), func(t *testing.T) {
			j := open(t)
			tk := inFlight(t, j)
			must(t, j.Cancel(t.Context(), tk.Number, epoch.Add(time.Minute)))
			want := stored(t, j, tk.ID)
			outcome := task.Outcome{Exit: 143, Signal: "SIGTERM", Message: "late", Duration: time.Hour}
			if err := recorded(j, tk, outcome, d, epoch.Add(time.Hour)); !errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v", err)
			}
			expect(t, j, want, task.Attempt{
				Number: 1, StartedAt: epoch, Outcome: outcome, Decision: task.Decision{Verdict: task.VerdictCancelled},
			})
			refuses(t, j, *tk, recording(d)) // there is an outcome now
		})
	}
}

// The owner's own cancellation has its outcome already.
func TestRecordAfterTheOwnCancelAddsNothing(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	stale := *tk
	must(t, recorded(j, tk, exit(130), cancelled, epoch))
	refuses(t, j, stale, recording(succeeded))
}

// An attempt can be ended once, and only the one that is in flight.
func TestRecordOfAnotherAttemptIsRefused(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	apply(t, j, tk, recording(interrupted), claiming())
	for _, number := range []int{0, 1, 3} {
		refuses(t, j, *tk, write{"record", func(j *Journal, t *task.Task) error {
			a := task.Attempt{Number: number, StartedAt: epoch, Outcome: exit(0), Decision: succeeded}
			t.ApplyDecision(a, epoch)
			return j.Record(context.Background(), t, a)
		}})
	}
}

// Of all pairs of a verdict and a status, the journal writes those that the state machine has.
func TestForbiddenTransitionsAreNotWritten(t *testing.T) {
	verdicts := []task.Verdict{
		"", task.VerdictSucceeded, task.VerdictRetry, task.VerdictFailed, task.VerdictExhausted,
		task.VerdictCancelled, task.VerdictInterrupted,
	}
	statuses := []task.Status{task.Pending, task.InFlight, task.Succeeded, task.Exhausted, task.Failed, task.Cancelled}
	known := map[string]bool{
		"record succeeded SUCCEEDED": true, "record retry PENDING": true, "record failed FAILED": true,
		"record exhausted EXHAUSTED": true, "record cancelled CANCELLED": true, "record interrupted PENDING": true,
		"settle exhausted EXHAUSTED": true, "settle cancelled CANCELLED": true, "settle interrupted PENDING": true,
	}
	j := open(t)
	for _, v := range verdicts {
		for _, s := range statuses {
			flying, idle := inFlight(t, j), waiting(t, j)
			flying.Status, idle.Status = s, s
			idle.NextAttemptAt = epoch.Add(time.Hour) // a change, where it is written
			a := task.Attempt{Number: 1, Outcome: exit(0), Decision: task.Decision{Verdict: v}}
			tries := map[string]func() error{
				"record": func() error { return j.Record(t.Context(), flying, a) },
				"settle": func() error { return j.Settle(t.Context(), idle, a.Decision) },
			}
			for verb, try := range tries {
				name := strings.Join([]string{verb, string(v), string(s)}, " ")
				before := dump(t, j)
				err := try()
				if changed := dump(t, j) != before; changed != known[name] || (err == nil) != known[name] || errors.Is(err, task.ErrNotOwner) {
					t.Errorf("%s: changed %v, error %v", name, changed, err)
				}
			}
		}
	}
}

// A write that fails half way leaves nothing behind, and the journal goes on once the cause is gone.
func TestFailedWritesLeaveNothingBehind(t *testing.T) {
	tests := []struct {
		write write
		task  func(tester, *Journal) *task.Task
		event string
	}{
		{claiming(), func(tester, *Journal) *task.Task { return newTask() }, "INSERT ON attempts"},
		{claiming(), waiting, "INSERT ON attempts"},
		{recording(succeeded), inFlight, "UPDATE ON attempts"},
		{cancelling(), inFlight, "UPDATE ON attempts"},
		{settling(exhausted), waiting, "UPDATE ON tasks"},
	}
	for _, test := range tests {
		t.Run(test.write.name, func(t *testing.T) {
			j := open(t)
			tk := test.task(t, j)
			before, number := dump(t, j), tk.Number
			fail(t, j, test.event)
			if err := test.write.do(j, tk); err == nil || errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v", err)
			}
			if after := dump(t, j); after != before || tk.Number != number {
				t.Errorf("task %d; changed\n%s\nto\n%s", tk.Number, before, after)
			}
			_, err := rawExec(j, "DROP TRIGGER failure")
			must(t, err)
			apply(t, j, tk, test.write)
		})
	}
}

// A context that has ended stops a write before it begins, and leaves the connection as it was.
func TestAnEndedContextWritesNothing(t *testing.T) {
	j := open(t)
	flying, idle := inFlight(t, j), waiting(t, j)
	done := *flying
	a := task.Attempt{Number: 1, Outcome: exit(0), Decision: succeeded}
	done.ApplyDecision(a, epoch)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := dump(t, j)
	for name, err := range map[string]error{
		"create": j.Claim(ctx, newTask(), epoch), "claim": j.Claim(ctx, idle, epoch), "record": j.Record(ctx, &done, a),
		"settle": j.Settle(ctx, idle, interrupted), "cancel": j.Cancel(ctx, flying.Number, epoch),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if after := dump(t, j); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
	apply(t, j, newTask(), claiming(), recording(succeeded))
	apply(t, j, flying, recording(succeeded))
}

// Two tasks of one id would be one task that runs twice.
func TestAnIDIsTakenOnce(t *testing.T) {
	j := open(t)
	first, second := inFlight(t, j), newTask()
	second.ID = first.ID
	before := dump(t, j)
	if err := claimed(j, second, epoch); err == nil {
		t.Error("written twice")
	}
	if after := dump(t, j); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}

// A write of both is the same as one after the other. It adds the outcome of an attempt that was cancelled to nothing: Record does.
func TestAChainIsARecordAndAClaim(t *testing.T) {
	texts := map[string]string{}
	for _, writes := range [][]write{{recording(atOnce), claiming()}, {chaining()}} {
		j := open(t)
		tk := newTask()
		tk.ID, tk.IdempotencyKey = "id", "key"
		must(t, claimed(j, tk, epoch))
		apply(t, j, tk, writes...)
		apply(t, j, tk, recording(succeeded))
		texts[writes[0].name] = dump(t, j)
	}
	if texts["chain"] != texts["record retry"] {
		t.Errorf("a chain wrote\n%s\nnot\n%s", texts["chain"], texts["record retry"])
	}
}

// A chain whose second attempt never began is a record.
func TestAnUnclaimLeavesARecord(t *testing.T) {
	var texts []string
	for range 2 {
		j := open(t)
		tk := newTask()
		tk.ID, tk.IdempotencyKey = "id", "key"
		must(t, claimed(j, tk, epoch))
		if len(texts) == 0 {
			must(t, recorded(j, tk, exit(3), atOnce, epoch))
		} else {
			chain := *tk
			must(t, chained(j, &chain, exit(3), epoch))
			tk.Status, tk.NextAttemptAt = task.Pending, epoch
			must(t, j.Unclaim(t.Context(), tk))
		}
		texts = append(texts, dump(t, j))
		if len(texts) == 2 {
			refuses(t, j, *tk, write{"unclaim", func(j *Journal, t *task.Task) error { return j.Unclaim(context.Background(), t) }})
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("taken back, a chain left\n%s\nnot\n%s", texts[1], texts[0])
	}
}
