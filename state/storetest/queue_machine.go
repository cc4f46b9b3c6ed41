package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// queueMachine drives a queue and a model of it side by side: several processes, each with a worker, on one clock that
// jumps. Claims are kept long after they have ended, as by workers that were stopped and go on.
type queueMachine struct {
	open    func() (state.Queue, error)
	workers []*modelWorker
	tasks   []*modelTask // in the order in which they were made
	claims  []*heldClaim
	ends    int // outcomes that were drawn
	clock   time.Time
}

type modelWorker struct {
	*process
}

// heldClaim is a claim as somebody remembers it.
type heldClaim struct {
	task task.Task // as its executor has it
	of   *modelTask
	by   *modelWorker
}

// holds reports whether the claim is the task's present one.
func (c *heldClaim) holds() bool { return c.of.current == c }

const machineWorkers = 3

func (m *queueMachine) start(t *rapid.T) *modelWorker {
	q, err := m.open()
	Must(t, err)
	w := &modelWorker{process: (&process{Queue: q, t: t, open: m.open}).register()}
	return w
}

func (m *queueMachine) worker(t *rapid.T) *modelWorker {
	return rapid.SampledFrom(m.workers).Draw(t, "worker")
}

func (m *queueMachine) task(t *rapid.T) *modelTask {
	if len(m.tasks) == 0 {
		t.Skip("no task yet")
	}
	return rapid.SampledFrom(m.tasks).Draw(t, "task")
}

func (m *queueMachine) claimed(t *rapid.T) *heldClaim {
	if len(m.claims) == 0 {
		t.Skip("no claim yet")
	}
	return rapid.SampledFrom(m.claims).Draw(t, "claim")
}

// tick moves the clock both ways. What is stored has microseconds.
func (m *queueMachine) tick(t *rapid.T) time.Time {
	m.clock = m.clock.Add(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "clock")) * time.Microsecond)
	return m.clock
}

// Add makes some tasks, or none of them.
func (m *queueMachine) Add(t *rapid.T) {
	now := m.tick(t)
	var tasks []*task.Task
	for range rapid.IntRange(1, 3).Draw(t, "tasks") {
		tk := NewRequest("example.org")
		if rapid.Bool().Draw(t, "command") {
			tk = queuedCommand()
		}
		tk.CreatedAt, tk.NextAttemptAt = now, now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "delay"))*time.Second)
		tk.Name = rapid.SampledFrom([]string{"", "", "nightly"}).Draw(t, "name")
		tk.Partition = rapid.SampledFrom([]string{"", "x"}).Draw(t, "partition")
		if tk.Payload = rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "payload"); tk.Payload != "" {
			tk.IdempotencyKey = rapid.SampledFrom([]string{"order-1", "order-2"}).Draw(t, "key")
		}
		tasks = append(tasks, tk)
	}
	added, err := m.worker(t).Add(context.Background(), tasks)
	made, replays, want := m.plan(tasks)
	if reused := (*state.KeyError)(nil); want != nil {
		if !errors.Is(err, want) && (!errors.As(want, &reused) || !errors.As(err, &reused)) {
			t.Fatalf("got %v, want %v", err, want)
		}
		return
	}
	Must(t, err)
	for i, a := range added {
		if a.Task.ID != replays[i] || a.Replayed != (replays[i] != tasks[i].ID) {
			t.Fatalf("got %s replayed %v for task %d, want %s", a.Task.ID, a.Replayed, i, replays[i])
		}
	}
	m.tasks = append(m.tasks, made...)
}

// plan says what an Add has to make, and which task it has to return for each.
func (m *queueMachine) plan(tasks []*task.Task) (made []*modelTask, ids []string, err error) {
	for i, tk := range tasks {
		known := slices.Concat(m.tasks, made)
		k := slices.IndexFunc(known, func(other *modelTask) bool {
			o := &other.task
			return tk.Payload != "" && o.Payload != "" && o.Partition == tk.Partition && o.IdempotencyKey == tk.IdempotencyKey
		})
		switch {
		case k >= 0 && known[k].task.Payload != tk.Payload:
			return nil, nil, &state.KeyError{Index: i, ID: known[k].task.ID}
		case k >= 0:
			ids = append(ids, known[k].task.ID)
			continue
		}
		made, ids = append(made, &modelTask{task: *tk}), append(ids, tk.ID)
	}
	for i, one := range made {
		if name := one.task.Name; name != "" && (m.named(name) || slices.ContainsFunc(made[:i],
			func(o *modelTask) bool { return o.task.Name == name })) {
			return nil, nil, state.ErrNamed
		}
	}
	return made, ids, nil
}

func (m *queueMachine) named(name string) bool {
	return name != "" && slices.ContainsFunc(m.tasks, func(o *modelTask) bool {
		return o.task.Name == name &&
			!o.task.Status.Finished()
	})
}

// Claim is a worker's try to begin the next attempts of some tasks.
func (m *queueMachine) Claim(t *rapid.T) {
	w, now := m.worker(t), m.tick(t)
	tasks := []*modelTask{m.task(t), m.task(t), m.task(t)}
	var numbers []int64
	for _, tk := range tasks {
		numbers = append(numbers, m.number(t, tk))
	}
	got, err := w.Claim(context.Background(), w.number, numbers, now, nil)
	Must(t, err)
	for i, tk := range tasks {
		due := tk.task.Status == task.Pending && !tk.task.NextAttemptAt.Truncate(time.Microsecond).After(now)
		if (got[i] != nil) != due {
			t.Fatalf("got %+v at %v of\n%s\nwant a claim: %v", got[i], now, ShowTask(&tk.task), due)
		}
		if !due {
			continue
		}
		got[i].BeginAttempt()
		tk.claim(now)
		c := &heldClaim{task: *got[i], of: tk, by: w}
		tk.current = c
		m.claims = append(m.claims, c)
	}
}

// number returns what the queue calls a task.
func (m *queueMachine) number(t *rapid.T, tk *modelTask) int64 {
	found, err := m.workers[0].Find(context.Background(), tk.task.ID)
	Must(t, err)
	return found.Number
}

// Settle is a try to end an attempt, by whoever once had it.
func (m *queueMachine) Settle(t *rapid.T) {
	c, o, d, now := m.claimed(t), drawOutcome(t), drawDecision(t, attemptEnds), m.tick(t)
	switch {
	case o.IsCrash() && d.Verdict == task.VerdictCancelled: // nobody cancels what has crashed
		d = Interrupted
	case !o.IsCrash():
		m.ends++
		o.Duration += time.Duration(m.ends) * time.Microsecond // no two are equal
	}
	a := &c.of.attempts[c.task.AttemptCount-1]
	moved := c.task
	err := c.by.settle(&moved, o, d, now, nil)
	switch {
	case c.holds():
		Must(t, err)
		a.Outcome, a.Decision = o, d
		c.of.decide(attemptEnds[d.Verdict], d, now)
		c.of.current = nil
		again := c.task
		if err := c.by.settle(&again, o, d, now, nil); err != nil {
			t.Fatalf("got %v the second time, want no error", err)
		}
	case errors.Is(err, task.ErrNotOwner):
		if a.Decision.Verdict == task.VerdictCancelled && a.Outcome.Exit == task.NoExit {
			a.Outcome = o
		}
	case err != nil || ShowAttempt(task.Attempt{Outcome: a.Outcome,
		Decision: a.Decision}) != ShowAttempt(task.Attempt{Outcome: o, Decision: d}):
		t.Fatalf("got %v of a late write, want %v", err, task.ErrNotOwner)
	}
}

// Note is a try to note the processes of an attempt.
func (m *queueMachine) Note(t *rapid.T) {
	c := m.claimed(t)
	process := fmt.Sprint("process ", rapid.IntRange(1, 9).Draw(t, "process"))
	err := c.by.NoteProcess(context.Background(), &c.task, process)
	if !c.holds() {
		if !errors.Is(err, task.ErrNotOwner) {
			t.Fatalf("got %v, want %v", err, task.ErrNotOwner)
		}
		return
	}
	Must(t, err)
	c.of.last().Process = process
}

// Cancel ends a task.
func (m *queueMachine) Cancel(t *rapid.T) {
	tk, now := m.task(t), m.tick(t)
	was := tk.task.Status
	before, err := m.worker(t).Cancel(context.Background(), m.number(t, tk), now)
	if before != was {
		t.Fatalf("got %s before, want %s", before, was)
	}
	if tk.cancel(now) {
		if !errors.Is(err, state.ErrFinished) {
			t.Fatalf("got %v, want %v", err, state.ErrFinished)
		}
		return
	}
	tk.current = nil
	Must(t, err)
}

// Requeue gives a task fresh attempts.
func (m *queueMachine) Requeue(t *rapid.T) {
	tk, now := m.task(t), m.tick(t)
	err := m.worker(t).Requeue(context.Background(), m.number(t, tk), now)
	want := error(nil)
	switch {
	case !tk.task.Status.Finished():
		want = state.ErrUnfinished
	case m.named(tk.task.Name):
		want = state.ErrNamed
	default:
		tk.requeue(now)
	}
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// Reschedule moves an attempt.
func (m *queueMachine) Reschedule(t *rapid.T) {
	tk, now := m.task(t), m.tick(t)
	waits, err := m.worker(t).Reschedule(context.Background(), m.number(t, tk), now)
	Must(t, err)
	if waits != (tk.task.Status == task.Pending) {
		t.Fatalf("got that it waits: %v, with status %s", waits, tk.task.Status)
	}
	if waits {
		tk.task.NextAttemptAt = now
	}
}

// Die ends a process, whose place another one takes. Its claims are remembered: it may have been stopped alone.
func (m *queueMachine) Die(t *rapid.T) {
	i := rapid.IntRange(0, len(m.workers)-1).Draw(t, "dies")
	dead := m.workers[i]
	dead.die()
	m.workers[i] = m.start(t)
	rescuer := m.worker(t)
	m.rescue(t, rescuer, time.Now(), func(c *heldClaim) bool { return c.by == dead })
	for _, c := range m.claims {
		if c.by == dead {
			c.by = m.workers[i]
		}
	}
}

// Stall takes the requests of all other workers, which have not renewed for long.
func (m *queueMachine) Stall(t *rapid.T) {
	rescuer := m.worker(t)
	had := func(w *modelWorker) bool {
		return slices.ContainsFunc(m.claims, func(c *heldClaim) bool {
			return c.holds() && m.heldBy(c) == w &&
				c.task.Target != nil
		})
	}
	var lost []*modelWorker
	for _, w := range m.workers {
		if w != rescuer && had(w) {
			lost = append(lost, w)
		}
	}
	m.rescue(t, rescuer, time.Now().Add(24*time.Hour), func(c *heldClaim) bool {
		return m.heldBy(c) != rescuer &&
			c.task.Target != nil
	})
	for _, w := range m.workers {
		err := w.Renew(context.Background(), w.number, time.Now())
		if want := slices.Contains(lost, w); errors.Is(err, state.ErrLeaseLost) != want || !want && err != nil {
			t.Fatalf("got %v of the lease of worker %d, want it lost: %v", err, w.number, want)
		}
	}
}

// heldBy is the worker that the queue has with a claim.
func (m *queueMachine) heldBy(c *heldClaim) *modelWorker {
	i := slices.IndexFunc(m.workers, func(w *modelWorker) bool { return w.number == c.task.Worker })
	if i < 0 {
		return nil
	}
	return m.workers[i]
}

// rescue has a worker take over the present claims that expected says, and no other.
func (m *queueMachine) rescue(t *rapid.T, rescuer *modelWorker, now time.Time, expected func(*heldClaim) bool) {
	want := map[string]*heldClaim{}
	for _, c := range m.claims {
		if c.holds() && expected(c) {
			want[c.of.task.ID] = c
		}
	}
	rescuer.t = t
	for _, tk := range rescuer.takeOver(now, 2) {
		c := want[tk.ID]
		if c == nil {
			t.Fatalf("got %s of a dead worker, want only %d others", ShowTask(tk), len(want))
		}
		delete(want, tk.ID)
		next := &heldClaim{task: *tk, of: c.of, by: rescuer}
		c.of.current = next
		m.claims = append(m.claims, next)
	}
	if len(want) > 0 {
		t.Fatalf("got no %d tasks of dead workers, want them taken over", len(want))
	}
}

// Check compares all tasks and attempts.
func (m *queueMachine) Check(t *rapid.T) {
	p := m.workers[0]
	p.t = t
	list := p.all(state.PageFilter{Limit: 5})
	if len(list) != len(m.tasks) {
		t.Fatalf("got %d tasks, want %d", len(list), len(m.tasks))
	}
	for i, tk := range list {
		want := m.tasks[len(m.tasks)-1-i]
		shown := want.task
		shown.Number = tk.Number
		attempts, err := p.AttemptsAfter(context.Background(), tk.Number, 0, 1000)
		Must(t, err)
		if g, w := Show(tk, attempts), Show(&shown, want.attempts); g != w {
			t.Fatalf("got\n%s\nwant\n%s", g, w)
		}
		if c := want.current; c == nil && tk.Nonce != 0 || c != nil && tk.Nonce != c.task.Nonce {
			t.Fatalf("got nonce %d of\n%s\nwant that of %+v", tk.Nonce, ShowTask(tk), c)
		}
		for k, a := range attempts {
			if a.Process != want.attempts[k].Process {
				t.Fatalf("got process %q of attempt %d, want %q", a.Process, a.Number, want.attempts[k].Process)
			}
		}
	}
}

// Whatever is done in whatever order, by workers that live, die or stand still: the queue is what the model says.
func (s queueSuite) theQueueIsItsModel(t *testing.T) {
	rapid.Check(t, func(check *rapid.T) {
		m := &queueMachine{open: s.create(t), clock: Epoch.Truncate(time.Microsecond)}
		for range machineWorkers {
			m.workers = append(m.workers, m.start(check))
		}
		defer func() {
			for _, w := range m.workers {
				_ = w.Close()
			}
		}()
		check.Repeat(rapid.StateMachineActions(m))
		m.Check(check)
	})
}
