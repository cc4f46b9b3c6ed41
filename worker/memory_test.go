package worker

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// memory is a queue without a disk, for tests in which time stands still while something is done. What no worker
// needs is not implemented.
type memory struct {
	state.Queue
	testing.TB

	mutex   sync.Mutex
	tasks   map[int64]*task.Task
	waiting []state.Item // in their order, with some that do not wait any more
	fresh   []state.Item // not in order yet
	nonce   int64
	changes chan state.Change
	targets []state.TargetSettings
	down    error // every call fails
	renew   error
	renewed int
	reads   int
	settled []task.Attempt
	full    error // with which KeepEnd fails
	kept    []task.Status
	taken   error         // what Settle says of what follows
	alone   []int64       // the tasks that TellUnfollowed was called for
	took    time.Duration // a claim
	writes  time.Duration // how long the outcome of an attempt is written
}

func newMemory(t testing.TB) *memory {
	return &memory{TB: t, tasks: map[int64]*task.Task{}, changes: make(chan state.Change, 4096)}
}

// add queues tasks and tells the worker, if there is one.
func (m *memory) add(tell bool, tasks ...*task.Task) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, t := range tasks {
		t.Number, t.Status = int64(len(m.tasks)+1), task.Pending
		if t.NextAttemptAt.IsZero() {
			t.NextAttemptAt = time.Now()
		}
		m.tasks[t.Number] = t
		m.wait(t, tell)
	}
}

func itemOf(t *task.Task) state.Item {
	return state.Item{
		Position: state.Position{Due: t.NextAttemptAt.Round(0), Number: t.Number},
		Lane:     state.Lane{Partition: t.Partition, Host: t.Host()},
	}
}

func (m *memory) wait(t *task.Task, tell bool) {
	i := itemOf(t)
	m.fresh = append(m.fresh, i)
	if tell {
		m.tell(state.Change{Number: t.Number, ID: t.ID, Status: task.Pending, Due: i.Due, Lane: i.Lane})
	}
}

func (m *memory) tell(c state.Change) {
	select {
	case m.changes <- c:
	default:
		for len(m.changes) > 0 {
			<-m.changes
		}
		m.changes <- state.Change{Lost: true}
	}
}

func (m *memory) Waiting(_ context.Context, after state.Position, until time.Time, lane *state.Lane,
	limit int) (found []state.Item, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.reads++; m.down != nil {
		return nil, m.down
	}
	if len(m.fresh) > 0 {
		all := slices.Concat(m.waiting, m.fresh)
		m.waiting, m.fresh = nil, nil
		for _, i := range all {
			if t := m.tasks[i.Number]; t.Status == task.Pending && t.NextAttemptAt.Equal(i.Due) {
				m.waiting = append(m.waiting, i)
			}
		}
		slices.SortFunc(m.waiting, func(a, b state.Item) int { return a.Compare(b.Position) })
	}
	from := sort.Search(len(m.waiting), func(i int) bool { return after.Before(m.waiting[i].Position) })
	for _, i := range m.waiting[from:] {
		if len(found) == limit || i.Due.After(until) {
			break
		}
		t := m.tasks[i.Number]
		if t.Status == task.Pending && t.NextAttemptAt.Equal(i.Due) && (lane == nil || i.Lane == *lane) {
			found = append(found, i)
		}
	}
	return found, nil
}

func (m *memory) Claim(_ context.Context, worker int64, numbers []int64, now time.Time,
	ready func(*task.Task) bool) ([]*task.Task, error) {
	time.Sleep(m.took)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.down != nil {
		return nil, m.down
	}
	claimed := make([]*task.Task, len(numbers))
	for i, number := range numbers {
		t := m.tasks[number]
		if t.Status != task.Pending || t.NextAttemptAt.After(now) || !ready(t) {
			continue
		}
		m.nonce++
		own := *t
		own.Worker, own.Nonce = worker, m.nonce
		t.Status, t.Nonce, t.AttemptCount = task.InFlight, m.nonce, t.AttemptCount+1
		claimed[i] = &own
	}
	return claimed, nil
}

func (m *memory) Settle(_ context.Context, t *task.Task, a task.Attempt, _ *task.Task) error {
	time.Sleep(m.writes)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	stored := m.tasks[t.Number]
	switch {
	case m.down != nil:
		return m.down
	case stored.Status != task.InFlight || stored.Nonce != t.Nonce || stored.AttemptCount != a.Number:
		return task.ErrNotOwner
	}
	nonce := stored.Nonce
	*stored = *t
	stored.Nonce = nonce
	m.settled = append(m.settled, a)
	if t.Status == task.Pending {
		m.wait(stored, true)
	}
	return m.taken
}

func (m *memory) TellUnfollowed(t *task.Task) { m.set(func() { m.alone = append(m.alone, t.Number) }) }

func (m *memory) KeepEnd(t *task.Task) (err error) {
	m.set(func() {
		if err = m.full; err == nil {
			m.kept = append(m.kept, t.Status)
		}
	})
	return err
}

// cancel is the cancellation by another process.
func (m *memory) cancel(number int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	t := m.tasks[number]
	t.Status = task.Cancelled
	m.tell(state.Change{Number: number, Status: task.Cancelled, Attempt: t.AttemptCount})
}

// cancelUnheard is a cancellation of which nobody is told.
func (m *memory) cancelUnheard(number int64) {
	m.set(func() { m.tasks[number].Status = task.Cancelled })
}

func (m *memory) Cancelled(_ context.Context, numbers []int64) (list []state.Change, err error) {
	m.set(func() {
		err = m.down
		for _, n := range numbers {
			if t := m.tasks[n]; t.Status == task.Cancelled {
				list = append(list, state.Change{Number: n, Status: task.Cancelled, Attempt: t.AttemptCount})
			}
		}
	})
	return list, err
}

func (m *memory) set(do func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	do()
}

func (m *memory) Unfinished(_ context.Context, due time.Time) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, t := range m.tasks {
		if t.Status == task.InFlight || t.Status == task.Pending && (due.IsZero() || !t.NextAttemptAt.After(due)) {
			return true, nil
		}
	}
	return false, m.down
}

func (m *memory) count(s task.Status) (n int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, t := range m.tasks {
		if t.Status == s {
			n++
		}
	}
	return n
}

func (m *memory) Changes(context.Context) <-chan state.Change { return m.changes }
func (m *memory) Register(context.Context, state.Worker) (int64, error) {
	return 1, nil
}
func (m *memory) Renew(context.Context, int64, time.Time) (err error) {
	m.set(func() { err, m.renew, m.renewed = m.renew, nil, m.renewed+1 })
	return err
}
func (m *memory) Unregister(context.Context, int64) error { return nil }
func (m *memory) Dead(context.Context, time.Time, time.Duration) ([]state.Worker, error) {
	return nil, nil
}
func (m *memory) Targets(context.Context) (list []state.TargetSettings, err error) {
	m.set(func() { list = slices.Clone(m.targets) })
	return list, nil
}
func (m *memory) CancelNested(context.Context, *task.Task, time.Time, time.Time) error { return nil }
func (m *memory) NoteProcess(context.Context, *task.Task, string) error                { return nil }
func (m *memory) NoteStart(*task.Task, string)                                         {}

var errDown = errors.New("the disk is full")
