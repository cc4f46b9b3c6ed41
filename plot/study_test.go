package plot

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// fataler is a test, or a check of one.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// subject is a policy with so many attempts; 0 is no limit.
func subject(t fataler, curve, jitter string, attempts int) Subject {
	t.Helper()
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	p := task.DefaultPolicy()
	p.Backoff, p.Attempts = spec, attempts
	return Subject{Label: curve + "/" + spec.Jitter(), Policy: p}
}

func study(t testing.TB, s Subject, o Options) Study {
	t.Helper()
	result, err := NewStudy(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func run(t testing.TB, simulation Simulation, s Subject) Trial {
	t.Helper()
	trial, err := simulation.Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

// Without jitter everything can be said beforehand.
func TestStudyOfWaves(t *testing.T) {
	got := study(t, subject(t, "exp:2s", "none", 4), Options{Tasks: 10})
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		r := got.Retries[i]
		if r.N != i+1 || r.Base != want || r.Least != want || r.Most != want || r.Mean != want || r.CV != 0 ||
			r.Tasks != 10 || r.Unbounded {
			t.Errorf("retry %d: got %+v", i+1, r)
		}
	}
	if want := (Window{14 * time.Second, 14 * time.Second, 14 * time.Second}); got.Window != want {
		t.Errorf("window %v", got.Window)
	}
	// Retries at 2, 6 and 14 s: 30 in 14 seconds, of which 11 are idle; a wave is the worst that can be.
	l := got.Load
	if l.Peak != 10 || math.Abs(l.Mean-30.0/14) > 1e-9 || math.Abs(l.Idle-11.0/14) > 1e-9 || l.Local != 16 {
		t.Errorf("got load %+v", l)
	}
	if len(got.Dots) != 30 || got.Drawn != 10 || got.Dots[4] != (Dot{Task: 1, Retry: 2, At: 6 * time.Second}) {
		t.Errorf("%d dots of %d tasks: %v", len(got.Dots), got.Drawn, got.Dots)
	}
}

// The first second is left out: what falls into it is no load that could be spread.
func TestStudyWithinASecond(t *testing.T) {
	got := study(t, subject(t, "constant:100ms", "none", 4), Options{Tasks: 3})
	if l := got.Load; l.Peak != 0 || l.Mean != 0 || l.Idle != 0 {
		t.Errorf("got load %+v", l)
	}
}

func TestStudyOfABudget(t *testing.T) {
	s := subject(t, "constant:10s", "full", 100)
	s.Policy.Budget = time.Minute
	got := study(t, s, Options{Tasks: 500, Seed: 1})
	last := got.Retries[len(got.Retries)-1]
	if last.N >= 99 || last.Tasks >= 500 || got.Window.Most > time.Minute {
		t.Errorf("%d retries, of the last one %d tasks, window %v", last.N, last.Tasks, got.Window)
	}
}

// Where bounds are out of sight they are said to be none.
func TestStudyWithoutBounds(t *testing.T) {
	got := study(t, subject(t, "exp:1h", "decorrelated", 20), Options{Tasks: 1})
	if got.Retries[0].Unbounded || !got.Retries[18].Unbounded {
		t.Errorf("%+v and %+v", got.Retries[0], got.Retries[18])
	}
}

func TestStudyHoldsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := rapid.SampledFrom([]string{"constant:3s", "exp:1s..20s", "linear:2s", "fib:1s", "list:1s,9s,0s",
			"poly:1s+n^2", "constant:0", "exp:40d"}).Draw(t, "curve")
		jitters := []string{"none", "full", "equal", "phase", "30%", "decorrelated", "add:2s"}
		jitter := rapid.SampledFrom(jitters).Draw(t, "jitter")
		tasks, attempts := rapid.IntRange(1, 200).Draw(t, "tasks"), rapid.IntRange(2, 12).Draw(t, "attempts")
		got, err := NewStudy(subject(t, curve, jitter, attempts), Options{Tasks: tasks, Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Retries) != attempts-1 || len(got.Dots) != tasks*(attempts-1) {
			t.Fatalf("got %d retries, %d dots", len(got.Retries), len(got.Dots))
		}
		var least, most time.Duration
		for _, r := range got.Retries {
			// A mean is a float of seconds: as exact as that.
			if near := time.Duration(float64(r.Most) * 1e-12); r.Tasks != tasks || r.Mean < r.Least-near-1 ||
				r.Mean > r.Most+near+1 {
				t.Fatalf("got %+v", r)
			}
			least, most = addSaturating(least, r.Least), addSaturating(most, r.Most)
		}
		w, l := got.Window, got.Load
		if w.Least < least || w.Most > most || w.Least > w.Most || l.Idle < 0 || l.Idle > 1 || l.Local < 0 ||
			l.Local > 16.000001 || l.Peak > float64(tasks*attempts) {
			t.Fatalf("got window %v, want it within %v and %v; load %+v", w, least, most, l)
		}
	})
}

// A million tasks are simulated in seconds because a retry allocates nothing.
func TestSimulateAllocatesNothing(t *testing.T) {
	p, s := newWorker(subject(t, "exp:1s..1m", "phase", 11).Policy, 10, 1), newSums(10)
	p.simulate(MaxDrawn, MaxDrawn+100, s) // makes the bins
	if n := testing.AllocsPerRun(20, func() { p.simulate(MaxDrawn, MaxDrawn+100, s) }); n > 0 {
		t.Errorf("got %v allocations for 1,000 retries, want 0", n)
	}
}

func TestStudyRefuses(t *testing.T) {
	for name, o := range map[string]struct {
		options  Options
		attempts int
	}{
		"no task": {Options{}, 5}, "too many tasks": {Options{Tasks: MaxTasks + 1}, 5}, "no retry": {Options{Tasks: 1}, 1},
		"without limit": {Options{Tasks: 1}, 0}, "too many attempts": {Options{Tasks: 1}, MaxAttempts + 1},
		"too much": {Options{Tasks: MaxTasks}, MaxAttempts},
	} {
		if _, err := NewStudy(subject(t, "exp:1s", "", o.attempts), o.options); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// Load over years is counted in longer steps, and none of it is lost.
func TestSecondsWiden(t *testing.T) {
	const bins = 40
	s := &secondCounts{step: time.Second, counts: map[int64]uint32{}}
	other := &secondCounts{step: time.Second, counts: map[int64]uint32{}}
	for i := range 100 {
		s.add(time.Duration(i) * time.Hour)
		s.fit(bins)
		other.add(time.Duration(i)*100*time.Hour + time.Minute)
		other.fit(bins)
	}
	s.merge(other)
	s.fit(bins)
	var all uint32
	for _, n := range s.counts {
		all += n
	}
	if all != 200 || len(s.counts) > bins || s.step <= 100*time.Hour {
		t.Errorf("got %d retries counted in %d bins of %v, want 200 in at most %d bins of more than 100h", all,
			len(s.counts), s.step, bins)
	}
}

// Decide is asked: a policy that calls every outcome a success retries none, but a plot is about failures.
func TestStudyFails(t *testing.T) {
	s := subject(t, "constant:2s", "none", 3)
	var err error
	if s.Policy.StopOn, err = task.ParseConditions([]string{"any"}); err != nil {
		t.Fatal(err)
	}
	if got := study(t, s, Options{Tasks: 1}); len(got.Retries) != 2 {
		t.Errorf("got %d retries, want 2", len(got.Retries))
	}
}

// A window beyond the longest duration would be a wrong figure, and its retries a false peak.
func TestStudyRefusesCenturies(t *testing.T) {
	if w := study(t, subject(t, "constant:365d", "none", 290), Options{Tasks: 3}).Window; w.Most != 289*backoff.Max {
		t.Errorf("got window %v, want 289 years", w)
	}
	if _, err := NewStudy(subject(t, "constant:365d", "none", 400), Options{Tasks: 3}); err == nil ||
		!strings.Contains(err.Error(), "399 retries take more than 292 years") {
		t.Errorf("got error %v, want one that says how long 399 retries take", err)
	}
}

// A million tasks with ten retries each.
func BenchmarkStudy(b *testing.B) {
	for _, jitter := range []string{"phase", "full"} {
		b.Run(jitter, func(b *testing.B) {
			s := subject(b, "exp:1s..1m", jitter, 11)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewStudy(s, Options{Tasks: 1_000_000, Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOutage(b *testing.B) {
	s := subject(b, "exp:1s..1m", "phase", 0)
	b.ReportAllocs()
	for b.Loop() {
		o := Outage{Clients: 1_000_000, Down: 2 * time.Minute, Capacity: 10_000, Seed: 1}
		if _, err := o.Run(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLock(b *testing.B) {
	s := subject(b, "exp:1s..1m", "full", 0)
	b.ReportAllocs()
	for b.Loop() {
		l := Lock{Clients: 10_000, Hold: 10 * time.Millisecond, Seed: 1}
		if _, err := l.Run(s); err != nil {
			b.Fatal(err)
		}
	}
}
