package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// machine drives a journal and a model of it side by side. Its writers hold copies of tasks, some of them long out of
// date, as processes do that were taken over or had a task cancelled under them.
type machine struct {
	reopen  func() (state.Store, error)
	journal state.Store
	tasks   []*modelTask // by number, from 1
	writers []task.Task
	clock   time.Time
}

// Create makes a task; who made it is its first writer.
func (m *machine) Create(t *rapid.T) {
	w, now := NewTask(), m.tick(t)
	w.Name = rapid.SampledFrom([]string{"", "nightly"}).Draw(t, "name")
	w.CreatedAt, w.History.Began = now, now
	err := Claimed(m.journal, w, now)
	if m.named(w.Name) {
		m.wants(t, err, state.ErrNamed)
		return
	}
	Must(t, err)
	created := &modelTask{task: *w}
	created.task.Number, created.task.Status, created.task.AttemptCount = int64(len(m.tasks)+1), task.Pending, 0
	created.claim(now)
	m.tasks = append(m.tasks, created)
	m.writers = append(m.writers, *w)
}

// named reports whether an unfinished task has the name.
func (m *machine) named(name string) bool {
	return name != "" && slices.ContainsFunc(m.tasks, func(tk *modelTask) bool {
		return tk.task.Name == name && !tk.task.Status.Finished()
	})
}

// Adopt makes another writer, with a copy that is up to date.
func (m *machine) Adopt(t *rapid.T) {
	tk := m.draw(t)
	w, err := m.journal.Adopt(context.Background(), tk.task.Number)
	if tk.task.Status.Finished() {
		m.wants(t, err, state.ErrFinished)
		return
	}
	Must(t, err)
	m.same(t, w, []task.Attempt{w.Last}, tk, []task.Attempt{*tk.last()})
	m.writers = append(m.writers, *w)
}

// Claim is a writer's try to begin the next attempt.
func (m *machine) Claim(t *rapid.T) {
	w, tk := m.drawWriter(t)
	now, may := m.tick(t), tk.stands(w, task.Pending)
	may = may && w.RequeuedAt.UnixMicro() == tk.task.RequeuedAt.UnixMicro()
	err := Claimed(m.journal, w, now)
	if !may {
		m.wants(t, err, task.ErrNotOwner)
		return
	}
	Must(t, err)
	tk.claim(now)
}

// Record is a writer's try to end the attempt that it believes to be in flight.
func (m *machine) Record(t *rapid.T) {
	w, tk := m.drawWriter(t)
	o, d, now := drawOutcome(t), drawDecision(t, attemptEnds), m.tick(t)
	err := Recorded(m.journal, w, o, d, now)
	if tk.record(w, o, d, now) {
		m.wants(t, err, task.ErrNotOwner)
		return
	}
	Must(t, err)
}

// Chain is a writer's try to end the attempt that it believes to be in flight, and to begin the next one with it.
func (m *machine) Chain(t *rapid.T) {
	w, tk := m.drawWriter(t)
	o, now := drawOutcome(t), m.tick(t)
	may := tk.stands(w, task.InFlight)
	err := Chained(m.journal, w, o, now)
	if !may {
		m.wants(t, err, task.ErrNotOwner)
		return
	}
	Must(t, err)
	tk.last().Outcome, tk.last().Decision = o, AtOnce
	tk.claim(now)
}

// Settle is a writer's try to end a wait, or to write down that it was cut off.
func (m *machine) Settle(t *rapid.T) {
	w, tk := m.drawWriter(t)
	d, now := drawDecision(t, attemptEnds), m.tick(t)
	may := tk.stands(w, task.Pending)
	err := Settled(m.journal, w, d, now)
	status, known := waitEnds[d.Verdict]
	switch {
	case !known && (err == nil || errors.Is(err, task.ErrNotOwner)):
		t.Fatalf("%s: got %v", d.Verdict, err)
	case known && !may:
		m.wants(t, err, task.ErrNotOwner)
	case known:
		Must(t, err)
		tk.decide(status, d, now)
	}
}

// Cancel ends a task, whoever owns it.
func (m *machine) Cancel(t *rapid.T) {
	tk, now := m.draw(t), m.tick(t)
	err := m.journal.Cancel(context.Background(), tk.task.Number, now)
	if tk.cancel(now) {
		m.wants(t, err, state.ErrFinished)
		return
	}
	Must(t, err)
}

// Requeue gives a task fresh attempts, if it has ended and its name is free.
func (m *machine) Requeue(t *rapid.T) {
	tk, now := m.draw(t), m.tick(t)
	stands := tk.task
	err := m.journal.Requeue(context.Background(), &stands, now)
	switch {
	case !tk.task.Status.Finished():
		m.wants(t, err, state.ErrUnfinished)
	case m.named(tk.task.Name):
		m.wants(t, err, state.ErrNamed)
	default:
		Must(t, err)
		tk.requeue(now)
	}
}

// Crash ends the process: its connection and its locks are gone. Its writers live on, each as another process.
func (m *machine) Crash(t *rapid.T) {
	Must(t, m.journal.Close())
	var err error
	m.journal, err = m.reopen()
	Must(t, err)
}

// Check compares all tasks with their last attempts; what else can be read is compared at the end, for the sake of
// speed.
func (m *machine) Check(t *rapid.T) {
	list, err := List(m.journal, state.Filter{})
	Must(t, err)
	if len(list) != len(m.tasks) {
		t.Fatalf("%d tasks of %d", len(list), len(m.tasks))
	}
	for i, tk := range list {
		want := m.tasks[len(m.tasks)-1-i]
		m.same(t, tk, []task.Attempt{tk.Last}, want, []task.Attempt{*want.last()})
	}
}

func (m *machine) checkAll(t *rapid.T) {
	m.Check(t)
	for _, want := range m.tasks {
		m.same(t, Stored(t, m.journal, want.task.ID), Attempts(t, m.journal, want.task.Number), want, want.attempts)
	}
	m.checkUnfinished(t)
}

func (m *machine) same(t *rapid.T, tk *task.Task, list []task.Attempt, want *modelTask, wantList []task.Attempt) {
	t.Helper()
	if g, w := Show(tk, list), Show(&want.task, wantList); g != w {
		t.Fatalf("got\n%s\nwant\n%s", g, w)
	}
}

func (m *machine) checkUnfinished(t *rapid.T) {
	var want []int64
	for _, tk := range m.tasks {
		if !tk.task.Status.Finished() {
			want = append(want, tk.task.Number)
		}
	}
	unfinished, err := m.journal.Unfinished(context.Background())
	Must(t, err)
	var got []int64
	for _, tk := range unfinished {
		got = append(got, tk.Number)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("unfinished are %v, want %v", got, want)
	}
}

func (m *machine) wants(t *rapid.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// tick moves the clock, which can be set back.
func (m *machine) tick(t *rapid.T) time.Time {
	m.clock = m.clock.Add(time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, "clock")))
	return m.clock
}

func (m *machine) draw(t *rapid.T) *modelTask {
	if len(m.tasks) == 0 {
		t.Skip("no task yet")
	}
	return rapid.SampledFrom(m.tasks).Draw(t, "task")
}

func (m *machine) drawWriter(t *rapid.T) (*task.Task, *modelTask) {
	if len(m.writers) == 0 {
		t.Skip("no writer yet")
	}
	w := &m.writers[rapid.IntRange(0, len(m.writers)-1).Draw(t, "writer")]
	return w, m.tasks[w.Number-1]
}

func drawOutcome(t *rapid.T) task.Outcome {
	took := time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "duration"))
	return rapid.SampledFrom([]task.Outcome{
		{Exit: 0, Duration: took}, {Exit: 75, Duration: took}, {Exit: 137, Signal: "SIGKILL", Duration: took},
		{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout, Message: "timed out", Duration: took},
		{Exit: 127, Error: task.ErrorNotFound, Message: "not found"}, task.Crashed(),
	}).Draw(t, "outcome")
}

func drawDecision(t *rapid.T, of map[task.Verdict]task.Status) task.Decision {
	verdicts := make([]task.Verdict, 0, len(of))
	for v := range of {
		verdicts = append(verdicts, v)
	}
	slices.Sort(verdicts)
	d := task.Decision{Verdict: rapid.SampledFrom(verdicts).Draw(t, "verdict")}
	switch d.Verdict {
	case task.VerdictRetry:
		d.Delay = time.Duration(rapid.Int64Range(0, int64(365*24*time.Hour)).Draw(t, "delay"))
		d.Shortened = rapid.Bool().Draw(t, "shortened")
	case task.VerdictExhausted:
		d.Reason = rapid.SampledFrom([]task.Reason{task.ReasonAttempts, task.ReasonBudget, task.ReasonCrashes}).Draw(t, "reason")
	case task.VerdictFailed:
		d.Reason = task.ReasonNotEligible
	case task.VerdictCancelled:
		d.Reason = task.ReasonCancelled
	}
	return d
}

// Whatever is done in whatever order, by writers up to date or not: the store is what the model says.
func (s suite) theStoreIsItsModel(t *testing.T) {
	rapid.Check(t, func(check *rapid.T) {
		m := &machine{reopen: s.create(t), clock: Epoch}
		var err error
		m.journal, err = m.reopen()
		Must(check, err)
		defer func() { _ = m.journal.Close() }()
		check.Repeat(rapid.StateMachineActions(m))
		m.checkAll(check)
	})
}
