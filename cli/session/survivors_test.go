package session

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// carriedStore is a journal in which other processes own tasks and are workers.
type carriedStore struct {
	state.Store
	owner   int
	workers []state.Worker
	exit    int // of the only attempt
}

func (s carriedStore) Owner(int64) (int, error) { return s.owner, nil }

func (s carriedStore) ListWorkers(context.Context) ([]state.Worker, error) { return s.workers, nil }

func (s carriedStore) Nested(context.Context, *task.Task) ([]*task.Task, error) { return nil, nil }

func (s carriedStore) Attempts(context.Context, int64) ([]task.Attempt, error) {
	return []task.Attempt{{Number: 1, Outcome: task.Outcome{Exit: s.exit}}}, nil
}

// endedStore is a journal with these tasks, the newest first.
type endedStore struct {
	state.Store
	tasks []*task.Task
}

func (s endedStore) All(_ context.Context, f state.Filter) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		for i, t := range s.tasks {
			if f.Limit > 0 && i >= f.Limit || !yield(t, nil) {
				return
			}
		}
	}
}

// However many lines of the name have waited since for what a run has left, the next one waits, too.
func TestALongQueueBehindWhatARunHasLeft(t *testing.T) {
	var ended []*task.Task
	for i := range 100 {
		ended = append(ended, &task.Task{ID: fmt.Sprint(i), Status: task.Cancelled})
	}
	killed := &task.Task{ID: "killed", AttemptCount: 1, Last: task.Attempt{Number: 1, Outcome: task.Crashed()}}
	journal := endedStore{tasks: append(ended, killed)}
	requeued := &task.Task{ID: "requeued", AttemptCount: 1, RequeuedAfter: 1, RequeuedAt: time.Now(), Status: task.Cancelled}
	journal.tasks = append(journal.tasks, requeued)
	found, _, err := cutOffRuns(t.Context(), journal, &task.Task{ID: "new", Name: "nightly"})
	testkit.Must(t, err)
	if len(found) != lookedAt+2 || found[lookedAt] != killed || found[lookedAt+1] != requeued {
		t.Errorf("got %v, want the newest that never began, as far as the journal knows, "+
			"the run that was killed, and the one that was requeued", found)
	}
}

// Who has claimed an attempt starts its command a moment later, though the task was cancelled in between. Until then
// there is no process to see.
func TestWhoHasACancelledAttemptInHandIsWaitedFor(t *testing.T) {
	begun := time.Now()
	own := fmt.Sprintf("host:%d", os.Getpid())
	workers := func(name string, gone bool, after time.Duration) []state.Worker {
		return []state.Worker{{Name: name, StartedAt: begun.Add(after), Gone: gone}}
	}
	tests := map[string]struct {
		store   carriedStore
		verdict task.Verdict
		worker  string
		outer   string
		status  task.Status
		want    bool
	}{
		"its owner lives":             {store: carriedStore{owner: 42}, want: true},
		"its owner is dead":           {},
		"it was interrupted":          {store: carriedStore{owner: 42}, verdict: task.VerdictInterrupted},
		"it runs around this process": {store: carriedStore{owner: 42}, outer: "x"},
		"its worker lives": {
			store: carriedStore{exit: task.NoExit, workers: workers("w:1", false, 0)}, worker: "w:1", want: true,
		},
		"its worker was another one with this number": {
			store: carriedStore{exit: task.NoExit, workers: workers(own, true, 0)}, worker: own,
		},
		"its worker has settled it": {store: carriedStore{exit: 1, workers: workers("w:1", false, 0)}, worker: "w:1"},
		"it was requeued meanwhile": {
			store: carriedStore{exit: task.NoExit, workers: workers("w:1", false, 0)}, worker: "w:1", status: task.InFlight,
		},
		"its worker is dead": {store: carriedStore{exit: task.NoExit, workers: workers("w:1", true, 0)}, worker: "w:1"},
		"a worker of that name came later": {
			store: carriedStore{exit: task.NoExit, workers: workers("w:1", false, time.Second)}, worker: "w:1",
		},
		"another worker": {store: carriedStore{exit: task.NoExit, workers: workers("w:2", false, 0)}, worker: "w:1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tk := &task.Task{ID: "x", Number: 1, Status: cmp.Or(tt.status, task.Cancelled)}
			tk.Last = task.Attempt{Number: 1, StartedAt: begun, Worker: tt.worker, Process: "{}",
				Decision: task.Decision{Verdict: cmp.Or(tt.verdict, task.VerdictCancelled)},
			}
			s := testHost("RETRY_TASK_ID="+tt.outer).newSurvivors(flags.SurvivorFlags{}, &Journal{Journal: tt.store})
			found, err := s.Find(tk, tk.Last)
			testkit.Must(t, err)
			if (found != "") != tt.want {
				t.Errorf("got %q, want something %v", found, tt.want)
			}
		})
	}
}

func (s endedStore) Find(_ context.Context, id string) (*task.Task, error) {
	for _, t := range s.tasks {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, state.ErrNotFound
}

// Two runs of which each continues the other do not become nested in each other: nobody would resume them.
func TestIsWithin(t *testing.T) {
	journal := endedStore{tasks: []*task.Task{
		{ID: "inner", Parent: "outer"}, {ID: "outer", Parent: "pruned"}, {ID: "loop", Parent: "loop"},
	}}
	for _, tt := range []struct {
		id, outer string
		want      bool
	}{
		{"", "inner", false}, {"inner", "inner", true}, {"inner", "outer", true}, {"outer", "inner", false},
		{"inner", "other", false}, {"loop", "other", true},
	} {
		if got := isWithin(t.Context(), journal, tt.id, tt.outer); got != tt.want {
			t.Errorf("%q in %q: got %v, want %v", tt.id, tt.outer, got, tt.want)
		}
	}
}

// What an inner run has left that had ended before its outer one was requeued is no part of that any more.
func TestOuterOfALaterLife(t *testing.T) {
	ended, requeued := time.Unix(100, 0), time.Unix(200, 0)
	for name, tt := range map[string]struct {
		again time.Time // when the outermost was requeued
		want  string
	}{
		"never": {want: "a"}, "before that end": {again: ended.Add(-time.Second), want: "a"}, "since": {again: requeued},
	} {
		journal := endedStore{tasks: []*task.Task{
			{ID: "a", Status: task.InFlight, RequeuedAt: tt.again},
			{ID: "i", Parent: "a", Status: task.Succeeded, FinishedAt: ended},
		}}
		outer, err := OuterOf(t.Context(), journal, &task.Task{ID: "b", Parent: "i", Status: task.Pending})
		testkit.Must(t, err)
		if outer == nil && tt.want != "" || outer != nil && outer.ID != tt.want {
			t.Errorf("%s: got %+v, want %q", name, outer, tt.want)
		}
	}
}

// What the attempts before a requeue have left is no part of those after it. The on-start hook has the number of the
// attempt before, and is one.
func TestIsOfEarlierLife(t *testing.T) {
	journal := endedStore{tasks: []*task.Task{
		{ID: "first"}, {ID: "again", RequeuedAt: time.Unix(1, 0), RequeuedAfter: 3},
	}}
	for _, tt := range []struct {
		outer, attempt, status string
		want                   bool
	}{
		{outer: "first", attempt: "0", status: "PENDING"}, {outer: "first", attempt: "1"},
		{outer: "again", attempt: "2", want: true}, {outer: "again", attempt: "3", want: true},
		{outer: "again", attempt: "3", status: "FAILED", want: true}, {outer: "again", attempt: "3", status: "PENDING"},
		{outer: "again", attempt: "4"}, {outer: "pruned", attempt: "1"},
	} {
		host := testHost("RETRY_ATTEMPT="+tt.attempt, "RETRY_STATUS="+tt.status)
		if got := isOfEarlierLife(t.Context(), host, journal, tt.outer); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}
