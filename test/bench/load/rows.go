package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes say how much work a row is.
type Sizes struct {
	Attempts    int           // tasks that are due at once
	Settle      time.Duration // that a worker gets to find its feet before tasks come due
	Clients     int           // that create tasks at the same time
	Creating    time.Duration // how long they do
	Scheduled   int           // tasks that come due evenly over Span
	Span        time.Duration
	Half        int           // tasks a second in the row "half"
	Million     int           // tasks that wait beside others, in the rows "million…"
	InHand      int           // tasks that a worker has when it is killed; at most its concurrency
	Waiting     int           // tasks that wait, for the memory of one
	Patience    time.Duration // how long a row waits for tasks that do not come
	Back        time.Duration // how long the row "kill" does
	SecondTries time.Duration // how long the row "kill" waits for a further attempt
}

// Slots are those of the workers, as a rule.
const Slots = 200

// Usual are the sizes that all rows of all systems need less than ten minutes for, on two slow cores.
func Usual() Sizes {
	return Sizes{Attempts: 40_000, Clients: 16, Creating: 3 * time.Second, Settle: time.Second, Scheduled: 4000,
		Span: 8 * time.Second, Half: 7500, Million: 1_000_000, InHand: 64, Waiting: 100_000, Patience: 150 * time.Second,
		Back: 15 * time.Second, SecondTries: 5 * time.Second}
}

// Row is a line of the table.
type Row struct {
	Name, Title, Reach string
	long               bool // measured a third as often
	beside             bool // beside tasks that wait, which rows that follow each other share
	measure            func(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error)
}

// Rows are all that can be measured, in the order of the table.
func Rows() []Row {
	return []Row{
		{Name: "attempts", Title: "attempts a second", measure: attempts,
			Reach: "≥ 1.6 × River, ≥ 3 × asynq; processor time ≤ 0.55 × before"},
		{Name: "creates", Title: "durable creates a second", Reach: "≥ 2.5 × River", measure: creates},
		{Name: "late", Title: "lateness of scheduled tasks", Reach: "p50 ≤ 1 ms, p99 ≤ 5 ms, never early",
			long: true, measure: late},
		{Name: "half", Title: "lateness at 7,500 a second", Reach: "p50 ≤ 1 ms, p99 ≤ 5 ms",
			long: true, measure: lateAtHalf},
		{Name: "kill", Title: "back at work after kill -9", Reach: "≤ 1.5 s, no attempt used up",
			long: true, measure: kill},
		{Name: "memory", Title: "memory of waiting tasks", Reach: "worker ≤ 64 MiB", long: true, measure: memory},
		{Name: "million", Title: "lateness beside a million that wait", Reach: "p50 ≤ 1 ms, p99 ≤ 5 ms, never early",
			long: true, beside: true, measure: scheduled},
		{Name: "million-attempts", Title: "attempts a second beside a million that wait",
			Reach: "≥ 0.95 of the rate with none", long: true, beside: true, measure: deliveries},
		{Name: "million-memory", Title: "memory with a million that wait", Reach: "worker ≤ 64 MiB",
			long: true, beside: true, measure: workerMemory},
	}
}

// attempts delivers tasks from a store that has no others.
func attempts(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	if err := s.Reset(ctx, false); err != nil {
		return nil, err
	}
	return deliveries(ctx, s, t, z)
}

// deliveries creates tasks while nobody works. Their rate is taken from the first to the last arrival, so that the
// start of a worker's process does not count. Its processor time does, and that of outcomes that are written after
// the last.
func deliveries(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	round := t.Begin(z.Attempts, nil)
	if err := errors.Join(s.Hold(), s.Fill(ctx, round.tasks(time.Time{}, 0, 0)), pause(ctx, z.Settle)); err != nil {
		return nil, err
	}
	before, err := used(s)
	if err != nil {
		return nil, err
	}
	if err := s.Work(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(round.all(ctx, z.Patience), pause(ctx, z.Settle/4)); err != nil {
		return nil, err
	}
	after, err := used(s)
	_, at := round.Arrivals(1)
	twice, _ := round.Arrivals(2)
	first, last := slices.MinFunc(at, time.Time.Compare), slices.MaxFunc(at, time.Time.Compare)
	numbers := []Number{{Unit: "/s", Value: float64(len(at)-1) / last.Sub(first).Seconds()}}
	numbers = append(numbers, after.since(before, len(at))...)
	once := Number{Name: "arrived once", Unit: "tasks", Value: float64(len(at) - len(twice)), Worst: -1}
	return append(numbers, once), err
}

// creates counts the acknowledgements that clients get who add one task after another.
func creates(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	if err := s.Reset(ctx, true); err != nil {
		return nil, err
	}
	task := Task{URL: t.Begin(1, nil).URL(0), Due: tomorrow()}
	var done atomic.Int64
	var clients sync.WaitGroup
	failures := make([]error, z.Clients)
	start := time.Now()
	for i := range z.Clients {
		clients.Go(func() {
			for failures[i] == nil && time.Since(start) < z.Creating {
				if failures[i] = s.Add(ctx, task); failures[i] == nil {
					done.Add(1)
				}
			}
		})
	}
	clients.Wait()
	rate := float64(done.Load()) / time.Since(start).Seconds()
	return []Number{{Unit: "/s", Value: rate}}, errors.Join(failures...)
}

func late(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	if err := s.Reset(ctx, false); err != nil {
		return nil, err
	}
	return scheduled(ctx, s, t, z)
}

// lateAtHalf is at half of the load that the service is to carry.
func lateAtHalf(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	z.Scheduled = int(float64(z.Half) * z.Span.Seconds())
	return late(ctx, s, t, z)
}

// scheduled measures how late tasks arrive that come due evenly. They are created before the first is due.
func scheduled(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	if err := s.Work(ctx); err != nil {
		return nil, err
	}
	round := t.Begin(z.Scheduled, nil)
	begin := time.Now().Add(2*z.Settle + time.Duration(z.Scheduled)*time.Second/6000).Truncate(time.Millisecond)
	tasks := round.tasks(begin, z.Span, 0)
	if err := s.Fill(ctx, tasks); err != nil {
		return nil, err
	}
	if ready := begin.Add(-z.Settle); time.Now().After(ready) {
		return nil, fmt.Errorf("creating %d tasks took until they were due", z.Scheduled)
	}
	if err := pause(ctx, time.Until(begin.Add(-z.Settle/2))); err != nil {
		return nil, err
	}
	before, err := used(s)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(round.all(ctx, z.Span+z.Patience), pause(ctx, z.Settle/4)); err != nil {
		return nil, err
	}
	after, err := used(s)
	number, at := round.Arrivals(1)
	by := make([]float64, len(at)) // milliseconds
	for i, arrived := range at {
		by[i] = arrived.Sub(tasks[number[i]].Due).Seconds() * 1000
	}
	numbers := []Number{{Name: "p50", Unit: "ms", Value: Percentile(by, 50)}, {Name: "p99", Unit: "ms", Value: Percentile(by, 99)},
		{Name: "max", Unit: "ms", Value: Percentile(by, 100), Worst: 1}}
	numbers = append(numbers, Number{Name: "earliest", Unit: "ms", Value: Percentile(by, 0), Worst: -1})
	return append(numbers, after.since(before, len(at))...), err
}

const (
	moreThan      = "more than"      // a time after which a row gave up
	processorTime = "processor time" // of the worker, for an attempt
)

// kill ends a worker that has tasks in hand, and starts another at once. The target lets the first attempts hang, refuses
// the second ones and accepts the third. A task may have two: only where the killed one was not counted is there a third.
func kill(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	killed := make(chan struct{})
	round := t.Begin(z.InHand, func(arrival int, gone <-chan struct{}) int {
		switch arrival {
		case 1:
			select {
			case <-gone:
			case <-killed:
			}
			return http.StatusServiceUnavailable
		case 2:
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	var once sync.Once
	release := func() { once.Do(func() { close(killed) }) }
	defer release()
	if err := errors.Join(s.Reset(ctx, false), s.Fill(ctx, round.tasks(time.Time{}, 0, 2))); err != nil {
		return nil, err
	}
	if err := s.Work(ctx); err != nil {
		return nil, err
	}
	if err := round.all(ctx, min(z.Patience, 30*time.Second)); err != nil {
		return nil, err
	}
	at := time.Now()
	if err := s.Kill(); err != nil {
		return nil, err
	}
	release()
	if err := s.Work(ctx); err != nil {
		return nil, err
	}
	back, err := round.Wait(ctx, 2, z.Back)
	if err != nil {
		return nil, err
	}
	if back < z.InHand { // the longest that it can be said to have taken
		return []Number{{Name: moreThan, Unit: "s", Value: time.Since(at).Seconds()},
			{Name: "came back", Unit: fmt.Sprintf("of %d", z.InHand), Value: float64(back)}}, nil
	}
	_, again := round.Arrivals(2)
	third, err := round.Wait(ctx, 3, z.SecondTries)
	took := slices.MaxFunc(again, time.Time.Compare).Sub(at).Seconds()
	return []Number{{Name: "all back after", Unit: "s", Value: took},
		{Name: "attempts used up", Unit: fmt.Sprintf("of %d", z.InHand), Value: float64(z.InHand - third)}}, err
}

// memory compares a worker and its store before and after many tasks wait.
func memory(ctx context.Context, s System, t *Target, z Sizes) ([]Number, error) {
	if err := errors.Join(s.Reset(ctx, false), s.Work(ctx)); err != nil {
		return nil, err
	}
	before, _, err := s.StoreBytes(ctx)
	if err != nil {
		return nil, err
	}
	if err := fillWaiting(ctx, s, t.Begin(1, nil).URL(0), z.Waiting); err != nil {
		return nil, err
	}
	if err := pause(ctx, z.Settle); err != nil {
		return nil, err
	}
	after, where, err := s.StoreBytes(ctx)
	numbers, failed := workerMemory(ctx, s, t, z)
	numbers = append(numbers, Number{Name: where, Unit: "B a task", Value: float64(after-before) / float64(z.Waiting)})
	return numbers, errors.Join(err, failed)
}

func workerMemory(_ context.Context, s System, _ *Target, _ Sizes) ([]Number, error) {
	pid, _ := s.Processes()
	size, err := PrivateMemory(pid)
	return []Number{{Name: "worker", Unit: "MiB", Value: float64(size) / (1 << 20)}}, err
}

// fillMillion leaves a store with tasks that are due tomorrow, and a worker beside it.
func fillMillion(ctx context.Context, s System, t *Target, z Sizes) error {
	if err := s.Reset(ctx, false); err != nil {
		return err
	}
	if err := fillWaiting(ctx, s, t.Begin(1, nil).URL(0), z.Million); err != nil {
		return err
	}
	return errors.Join(s.Work(ctx), pause(ctx, z.Settle))
}

// fillWaiting creates tasks that come due long after the run, 50,000 at a time.
func fillWaiting(ctx context.Context, s System, url string, n int) error {
	due := tomorrow()
	for n > 0 {
		some := make([]Task, min(n, 50_000))
		for i := range some {
			some[i] = Task{URL: url, Due: due.Add(time.Duration(n-i) * time.Millisecond)}
		}
		if err := s.Fill(ctx, some); err != nil {
			return err
		}
		n -= len(some)
	}
	return nil
}

// tasks are those of a round, due evenly over the span from begin on.
func (r *Round) tasks(begin time.Time, span time.Duration, attempts int) []Task {
	all := make([]Task, len(r.arrivals))
	for i := range all {
		all[i] = Task{URL: r.URL(i), Attempts: attempts}
		if !begin.IsZero() {
			all[i].Due = begin.Add(span * time.Duration(i) / time.Duration(len(all))).Truncate(time.Millisecond)
		}
	}
	return all
}

// all waits until each task has come once.
func (r *Round) all(ctx context.Context, patience time.Duration) error {
	came, err := r.Wait(ctx, 1, patience)
	if err == nil && came < len(r.arrivals) {
		err = fmt.Errorf("got %d of %d tasks at the target within %v", came, len(r.arrivals), patience)
	}
	return err
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour).Truncate(time.Millisecond) }

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
