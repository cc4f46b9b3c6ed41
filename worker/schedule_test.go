package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func item(number int64, due time.Time, partition, host string) state.Item {
	return state.Item{Position: state.Position{Due: due, Number: number}, Lane: state.Lane{Partition: partition, Host: host}}
}

// takeAll takes what may begin now.
func takeAll(s *schedule, now time.Time) (taken []state.Item) {
	s.advance(now)
	for {
		i, _, ok, _ := s.take(now)
		if !ok {
			return taken
		}
		taken = append(taken, i)
	}
}

func numbers(items []state.Item) (list []int64) {
	for _, i := range items {
		list = append(list, i.Number)
	}
	return list
}

func known(s *schedule, hosts ...string) {
	for _, h := range hosts {
		s.host(h).class = answering
	}
}

func TestTakenInTheOrderOfTheirTimes(t *testing.T) {
	s := newSchedule(100, 42)
	known(s, "a")
	for _, n := range rand.Perm(50) {
		s.push(item(int64(n), noon.Add(time.Duration(n/2)*time.Second), "", "a"), noon.Add(-time.Hour))
	}
	if got := takeAll(s, noon.Add(-time.Nanosecond)); len(got) > 0 {
		t.Errorf("got %v before the first one is due, want none", numbers(got))
	}
	var got []int64
	for second := range 25 {
		taken := numbers(takeAll(s, noon.Add(time.Duration(second)*time.Second)))
		if want := []int64{int64(2 * second), int64(2*second + 1)}; !slices.Equal(taken, want) {
			t.Errorf("after %d s: got %v, want %v", second, taken, want)
		}
		got = append(got, taken...)
	}
	if len(got) != 50 || s.size() != 0 {
		t.Errorf("got %d tasks, and %d left, want 50 and none", len(got), s.size())
	}
}

func TestLanesTakeTurns(t *testing.T) {
	type add struct {
		partition, host string
		count           int
	}
	tests := map[string]struct {
		adds []add
		want string // of the first takes, the lanes
	}{
		"hosts":      {[]add{{"", "a", 9}, {"", "b", 2}}, "a b a b a a"},
		"partitions": {[]add{{"big", "a", 9}, {"small", "a", 2}}, "big/a small/a big/a small/a big/a big/a"},
		"partitions before hosts": {
			[]add{{"big", "a", 9}, {"big", "b", 9}, {"small", "c", 3}}, "big/a small/c big/b small/c big/a small/c big/b",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(100, 42)
			known(s, "a", "b", "c")
			n := int64(0)
			for _, a := range test.adds {
				for range a.count {
					n++
					s.push(item(n, noon, a.partition, a.host), noon)
				}
			}
			got := ""
			for range len(test.want) {
				i, _, ok, _ := s.take(noon)
				if !ok || len(got) >= len(test.want) {
					break
				}
				if got != "" {
					got += " "
				}
				if i.Partition != "" {
					got += i.Partition + "/"
				}
				got += i.Host
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestBoundsOfHosts(t *testing.T) {
	tests := map[string]struct {
		host     string
		settings state.TargetSettings
		want     int // that begin at once, of 50
		later    time.Duration
	}{
		"the worker's bound": {host: "a", want: 16},
		"its own bound":      {host: "a", settings: state.TargetSettings{MaxConcurrent: 3}, want: 3},
		"a larger one":       {host: "a", settings: state.TargetSettings{MaxConcurrent: 40}, want: 16},
		"paused":             {host: "a", settings: state.TargetSettings{Paused: true, MaxConcurrent: 3}},
		"a rate":             {host: "a", settings: state.TargetSettings{RatePerSecond: 4}, want: 1, later: 250 * time.Millisecond},
		"commands":           {settings: state.TargetSettings{MaxConcurrent: 32}, want: 32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(16, 42)
			known(s, test.host)
			test.settings.Host = test.host
			s.set([]state.TargetSettings{test.settings})
			for n := range int64(50) {
				s.push(item(n+1, noon, "", test.host), noon)
			}
			taken := takeAll(s, noon)
			if len(taken) != test.want {
				t.Errorf("got %d at once, want %d", len(taken), test.want)
			}
			if _, _, _, from := s.take(noon); test.later > 0 && !from.Equal(noon.Add(test.later)) {
				t.Errorf("got the next at %v, want it after %v", from, test.later)
			}
			for range taken {
				s.done(state.Lane{Host: test.host}, answering, true, true)
			}
			s.set(nil)
			if got := len(takeAll(s, noon.Add(time.Hour))); got != 16 {
				t.Errorf("got %d without the bound, want 16", got)
			}
		})
	}
}

// What did not reply holds a part of the slots, and nothing of what is for hosts that were never asked.
func TestSilentHostsLeaveSlots(t *testing.T) {
	s := newSchedule(16, 42)
	n := int64(0)
	push := func(host string, count int) {
		for range count {
			n++
			s.push(item(n, noon, "", host), noon)
		}
	}
	for h := range 10_000 {
		name := fmt.Sprint("dead-", h)
		s.host(name).class = mute
		push(name, 3)
	}
	known(s, "healthy")
	push("healthy", 16)
	push("new", 16)
	by := map[string]int{}
	for _, i := range takeAll(s, noon) {
		by[i.Host[:3]]++
	}
	if by["hea"] != 16 || by["new"] != 16 || by["dea"] != 16 {
		t.Errorf("got %v, want 16 to each", by)
	}
}

// A host that was asked once in vain is asked again, however much there is for the others.
func TestNoClassWaitsForTheOthers(t *testing.T) {
	s := newSchedule(16, 42)
	known(s, "busy")
	s.host("mute").class = mute
	for n := range int64(900) {
		s.push(item(n+1, noon, "", "busy"), noon)
	}
	s.push(item(1001, noon, "", "mute"), noon)
	s.push(item(1002, noon, "", "new"), noon)
	for n := 1; ; n++ {
		i, class, ok, _ := s.take(noon)
		if !ok || n > 16 {
			t.Fatalf("got nothing to mute or new within %d attempts to the busy one", n)
		}
		s.done(i.Lane, class, true, true)
		if i.Host == "mute" && s.host("new").class == answering {
			return
		}
	}
}

// A host whose class changes often has one turn a round like any other.
func TestTurnsOfAHostThatFlaps(t *testing.T) {
	s := newSchedule(16, 42)
	known(s, "a", "b")
	for n := range int64(500) {
		s.push(item(2*n+1, noon, "", "a"), noon)
		s.push(item(2*n+2, noon, "", "b"), noon)
	}
	for n := range 100 {
		i, class, _, _ := s.take(noon)
		s.done(i.Lane, class, true, i.Host == "b" || n%2 == 0)
	}
	s.host("a").class = answering
	if turns := s.rings[""].turns[answering]; len(turns) > 2 {
		t.Errorf("got %d turns of 2 lanes, want 2 at most", len(turns))
	}
}

// run runs a worker on a memory within a bubble until stop is called.
func (m *memory) run(c Config, e execute) (w *Worker, stop func()) {
	c.Queue, c.Random = m, rand.Float64
	if c.Open == nil {
		c.Open = func(*task.Task) (*Execution, error) { return &Execution{Executor: e}, nil }
	}
	w = New(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, context.Background()) }()
	return w, func() {
		cancel()
		if err := <-ended; err != nil {
			m.Error(err)
		}
	}
}

// begun is an Observer that notes which attempts begin, and how late.
type begun struct {
	sync.Mutex
	late     map[string]time.Duration // by host, the latest
	ran      map[int64]int
	warnings []error
}

func (b *begun) Began(t *task.Task, late time.Duration) {
	b.Lock()
	defer b.Unlock()
	if b.ran == nil {
		b.late, b.ran = map[string]time.Duration{}, map[int64]int{}
	}
	b.ran[t.Number]++
	if before, found := b.late[t.Host()]; !found || late > before || late < 0 {
		b.late[t.Host()] = late
	}
}

func (b *begun) times(number int64) int {
	b.Lock()
	defer b.Unlock()
	return b.ran[number]
}

func (b *begun) latest(host string) time.Duration {
	b.Lock()
	defer b.Unlock()
	return b.late[host]
}

func (b *begun) Ended(*task.Task, task.Attempt) {}

func (b *begun) Warn(err error) {
	b.Lock()
	defer b.Unlock()
	b.warnings = append(b.warnings, err)
}

func (b *begun) warned(text string) (times int) {
	b.Lock()
	defer b.Unlock()
	for _, err := range b.warnings {
		if err.Error() == text {
			times++
		}
	}
	return times
}

// A backlog of 300,000 tasks to one slow host and to hosts that are paused is not loaded as a whole, and does not delay
// what is for another host.
func TestBacklogBeyondTheWindow(t *testing.T) {
	backlog := 300_000
	if testing.Short() {
		backlog = 150_000
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		old := time.Now().Add(-time.Hour)
		for n := range backlog {
			tk := queued(fmt.Sprint("paused-", n%200))
			if n%3 == 0 {
				tk = queued("slow")
			}
			tk.NextAttemptAt = old.Add(time.Duration(n) * time.Microsecond)
			m.add(false, tk)
		}
		for n := range 200 {
			m.targets = append(m.targets, state.TargetSettings{Host: fmt.Sprint("paused-", n), Paused: true})
		}
		var b begun
		w, stop := m.run(Config{Observer: &b}, func(_ context.Context, t *task.Task, _ runner.Call) task.Outcome {
			if t.Host() == "slow" {
				time.Sleep(10 * time.Second)
			}
			return ok
		})
		time.Sleep(time.Minute)
		for n := range 50 {
			tk := queued("healthy")
			tk.NextAttemptAt = time.Now().Add(time.Duration(n%10) * time.Second)
			m.add(true, tk)
		}
		time.Sleep(20 * time.Second)
		stop()
		if got := w.plan.size(); got > windowMax {
			t.Errorf("got %d tasks in memory, want %d at most", got, windowMax)
		}
		if got := b.latest("healthy"); got != 0 {
			t.Errorf("got a healthy host late by %v, want 0", got)
		}
		if got := m.count(task.Succeeded); got < 50+16*7 {
			t.Errorf("got %d that succeeded, want 50 and those of the slow host", got)
		}
	})
}

// Each task of a backlog that is longer than a lane runs once, while others are added.
func TestLongLaneIsFed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		const half = 4500
		for range half {
			m.add(false, queued("host"))
		}
		var b begun
		_, stop := m.run(Config{Observer: &b}, func(context.Context, *task.Task, runner.Call) task.Outcome {
			time.Sleep(time.Millisecond)
			return ok
		})
		for range half {
			time.Sleep(50 * time.Microsecond)
			m.add(true, queued("host"))
		}
		time.Sleep(time.Second)
		stop()
		if got := m.count(task.Succeeded); got != 2*half {
			t.Errorf("got %d that succeeded a second later, want %d", got, 2*half)
		}
		for number, times := range b.ran {
			if times != 1 {
				t.Errorf("task %d: got %d attempts, want 1", number, times)
			}
		}
	})
}

// However many tasks are added that are due soon, memory holds a window of them.
func TestMemoryIsBounded(t *testing.T) {
	tasks := 1_000_000
	if testing.Short() {
		tasks = 300_000
	}
	s := newSchedule(16, 42)
	s.loaded = state.Position{Due: noon.Add(horizon), Number: 1 << 62}
	for _, n := range rand.Perm(tasks) {
		due := noon.Add(time.Duration(n) * horizon / time.Duration(tasks))
		if i := item(int64(n+1), due, "", fmt.Sprint("host-", n%50)); !s.loaded.Before(i.Position) {
			s.push(i, noon)
		}
		if got := s.size(); got > 2*windowMax {
			t.Fatalf("got %d tasks in memory, want %d at most", got, 2*windowMax)
		}
	}
	if !s.partial || s.size() < windowMax/2 {
		t.Errorf("got %d tasks in memory, partial %v, want half a window or more, and more to load", s.size(), s.partial)
	}
	for n := range windowMax / 2 { // the first ones are all here
		if i := s.future[n]; !i.Before(s.loaded) && i.Position != s.loaded {
			t.Fatalf("got a task at %v, loaded until %v", i.Due, s.loaded.Due)
		}
	}
}

// model is a worker's schedule with a naive store behind it.
type model struct {
	*memory
	settings map[string]state.TargetSettings
	running  map[string]int
	most     map[string]int
}

// Whatever is added, cancelled, moved, paused and answered: no task begins early or twice, no bound is exceeded, and all
// that may run has run in the end.
func TestScheduleAgainstModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			d := &model{
				memory: newMemory(t), settings: map[string]state.TargetSettings{}, running: map[string]int{}, most: map[string]int{},
			}
			d.took = time.Duration(rapid.IntRange(0, 3).Draw(r, "claim")) * time.Millisecond
			concurrency := rapid.IntRange(1, 12).Draw(r, "concurrency")
			perHost := rapid.IntRange(1, 6).Draw(r, "per host")
			hosts := rapid.IntRange(1, 8).Draw(r, "hosts")
			var mutex sync.Mutex
			all := 0
			w, stop := d.run(Config{Concurrency: concurrency, PerHost: perHost},
				func(_ context.Context, tk *task.Task, _ runner.Call) task.Outcome {
					mutex.Lock()
					all++
					d.running[tk.Host()]++
					mine, here := d.running[tk.Host()], all
					mutex.Unlock()
					if mine > perHost || here > concurrency {
						t.Errorf("got %d attempts to %s and %d in all, want %d and %d at most", mine, tk.Host(), here, perHost, concurrency)
					}
					time.Sleep(time.Duration(tk.Number%7) * 10 * time.Millisecond)
					mutex.Lock()
					defer mutex.Unlock()
					all--
					d.running[tk.Host()]--
					if (tk.Number+int64(tk.AttemptCount))%4 == 0 {
						return task.Outcome{Exit: 1, Reply: &task.Reply{Default: task.Eligibility{Class: task.ClassRetryable}}}
					}
					return ok
				})
			for range rapid.IntRange(1, 60).Draw(r, "steps") {
				d.step(r, hosts)
			}
			d.set(func() { d.targets = nil })
			d.tell(state.Change{Target: "all"})
			time.Sleep(30 * time.Minute)
			stop()
			if left := d.count(task.Pending) + d.count(task.InFlight); left > 0 {
				t.Errorf("got %d tasks that never ended", left)
			}
			if p := w.plan; p.sharers != 0 || p.settled != 0 || p.trials != [classes]int{} {
				t.Errorf("got %d sharers, %d settled and %v attempts where nothing runs", p.sharers, p.settled, p.trials)
			}
		})
	})
}

func (d *model) step(r *rapid.T, hosts int) {
	host := fmt.Sprint("host-", rapid.IntRange(0, hosts-1).Draw(r, "host"))
	switch rapid.IntRange(0, 9).Draw(r, "step") {
	case 0, 1, 2, 3:
		for range rapid.IntRange(1, 30).Draw(r, "count") {
			t := queued(host)
			t.Policy.Attempts = 0
			t.Partition = rapid.SampledFrom([]string{"", "p", "q"}).Draw(r, "partition")
			t.NextAttemptAt = time.Now().Add(time.Duration(rapid.IntRange(-1000, 5000).Draw(r, "due")) * time.Millisecond)
			d.add(true, t)
		}
	case 4:
		time.Sleep(time.Duration(rapid.IntRange(0, 3000).Draw(r, "sleep")) * time.Millisecond)
	case 5:
		d.set(func() {
			d.targets = []state.TargetSettings{{
				Host: host, Paused: rapid.Bool().Draw(r, "paused"), MaxConcurrent: rapid.IntRange(0, 4).Draw(r, "most"),
				RatePerSecond: float64(rapid.IntRange(0, 50).Draw(r, "rate")),
			}}
		})
		d.tell(state.Change{Target: host})
	case 6:
		if n := len(d.tasks); n > 0 {
			number := int64(rapid.IntRange(1, n).Draw(r, "task"))
			finished := false
			d.set(func() { finished = d.tasks[number].Status.Finished() })
			if !finished {
				d.cancel(number)
			}
		}
	case 7:
		d.move(int64(rapid.IntRange(1, 1000).Draw(r, "task")), time.Duration(rapid.IntRange(0, 4000).Draw(r, "by"))*time.Millisecond)
	case 8:
		d.tell(state.Change{Lost: true})
	case 9:
		d.set(func() { d.down = errDown })
		time.Sleep(time.Duration(rapid.IntRange(0, 2000).Draw(r, "down")) * time.Millisecond)
		d.set(func() { d.down = nil })
	}
}

// move reschedules a task that waits.
func (m *memory) move(number int64, in time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if t := m.tasks[number]; t != nil && t.Status == task.Pending {
		t.NextAttemptAt = time.Now().Add(in)
		m.wait(t, true)
	}
}
