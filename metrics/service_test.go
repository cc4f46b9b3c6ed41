package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/10f93571/retry/metrics"
	"github.com/10f93571/retry/task"
)

type ctx = context.Context

func build() metrics.Build {
	return metrics.Build{Version: "v1.2.3", Revision: "0123abc", GoVersion: "go1.26"}
}

// filled is a service with a sample in each family.
func filled() *metrics.Service {
	s := metrics.NewService(build())
	s.AttemptEnded(metrics.Retry, "payments", 20*time.Millisecond)
	s.AttemptEnded(metrics.Success, "", time.Second)
	s.Delayed("payments", time.Minute)
	s.TaskAge.Observe(time.Hour)
	s.Lateness.Observe(time.Millisecond)
	s.InFlight.Inc()
	s.LockBusy.Inc()
	s.LockWait.Observe(time.Millisecond)
	s.StoreTook("claim", 30*time.Microsecond)
	s.CountStore(func(ctx) (metrics.StoreFigures, error) {
		return metrics.StoreFigures{
			Tasks: map[string]int64{"PENDING": 5, "EXHAUSTED": 2}, Due: 3, OldestDue: time.Now().Add(-time.Minute),
			DeadLetters: map[string]int64{"payments": 2},
		}, nil
	})
	return s
}

func scrape(t testing.TB, s *metrics.Service) map[string]*dto.MetricFamily {
	t.Helper()
	return parse(t, s.Text(t.Context(), metrics.Prometheus), metrics.Prometheus.ContentType())
}

// value finds the value of a sample by the values of its labels, and whether it is there.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) (float64, bool) {
	for _, m := range families[name].GetMetric() {
		var had []string
		for _, l := range m.GetLabel() {
			had = append(had, l.GetValue())
		}
		if !slices.Equal(had, labels) {
			continue
		}
		switch {
		case m.Counter != nil:
			return m.Counter.GetValue(), true
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount()), true
		}
		return m.GetGauge().GetValue(), true
	}
	return 0, false
}

func TestTheServiceHasItsMetrics(t *testing.T) {
	families := scrape(t, filled())
	for _, row := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"retry_attempts_total", []string{"retry", "payments"}, 1},
		{"retry_attempts_total", []string{"failed", "payments"}, 0},
		{"retry_attempts_total", []string{"success", "inline"}, 1},
		{"retry_task_age_seconds", nil, 1},
		{"retry_attempt_duration_seconds", []string{"payments"}, 1},
		{"retry_delay_seconds", []string{"payments"}, 1},
		{"retry_schedule_lateness_seconds", nil, 1},
		{"retry_tasks", []string{"PENDING"}, 5},
		{"retry_tasks", []string{"CANCELLED"}, 0},
		{"retry_tasks_due", nil, 3},
		{"retry_dead_letters", []string{"payments"}, 2},
		{"retry_dead_letters", []string{"inline"}, 0},
		{"retry_lock_busy_total", nil, 1},
		{"retry_lock_wait_seconds", nil, 1},
		{"retry_store_seconds", []string{"claim"}, 1},
		{"retry_inflight", nil, 1},
		{"retry_unfollowed_total", nil, 0},
		{"retry_spans_dropped_total", nil, 0},
		{"retry_build_info", []string{"v1.2.3", "0123abc", "go1.26"}, 1},
	} {
		if got, ok := value(families, row.name, row.labels...); !ok || got != row.want {
			t.Errorf("%s %v: got %v (%v), want %v", row.name, row.labels, got, ok, row.want)
		}
	}
	if got, _ := value(families, "retry_oldest_due_seconds"); got < 60 || got > 120 {
		t.Errorf("oldest due: got %v, want 60", got)
	}
}

func TestTheStatusesAreThoseOfTasks(t *testing.T) {
	want := map[string]bool{}
	for _, transition := range task.Transitions() {
		want[string(transition.To)] = true
	}
	got := metrics.Statuses()
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Whoever makes up names of policies gets 200 of them, in counters and in the figures of a store.
func TestNamesOfPoliciesAreBounded(t *testing.T) {
	s := metrics.NewService(build())
	dead := map[string]int64{}
	for i := range 1000 {
		s.AttemptEnded(metrics.Success, fmt.Sprintf("policy-%d", i), time.Millisecond)
		s.Delayed(fmt.Sprintf("policy-%d", i), time.Millisecond)
		dead[fmt.Sprintf("policy-%d", i)] = 1
	}
	for range 5 {
		s.AttemptEnded(metrics.Success, "", time.Millisecond)
		s.AttemptEnded(metrics.Failed, "policy-0", time.Millisecond)
	}
	s.CountStore(func(ctx) (metrics.StoreFigures, error) { return metrics.StoreFigures{DeadLetters: dead}, nil })
	families := scrape(t, s)
	for _, row := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"retry_attempts_total", []string{"success", "other"}, 800},
		{"retry_attempts_total", []string{"success", "inline"}, 5},
		{"retry_attempts_total", []string{"failed", "policy-0"}, 5},
		{"retry_delay_seconds", []string{"other"}, 800},
		{"retry_dead_letters", []string{"other"}, 800},
		{"retry_dead_letters", []string{"policy-199"}, 1},
	} {
		if got, ok := value(families, row.name, row.labels...); !ok || got != row.want {
			t.Errorf("%s %v: got %v (%v), want %v", row.name, row.labels, got, ok, row.want)
		}
	}
	const names = metrics.MaxPolicies + 2
	for name, want := range map[string]int{
		"retry_attempts_total": names * len(metrics.Outcomes()), "retry_attempt_duration_seconds": names,
		"retry_delay_seconds": names - 1, "retry_dead_letters": names,
	} {
		if got := len(families[name].GetMetric()); got != want {
			t.Errorf("%s: got %d members, want %d", name, got, want)
		}
	}
}

// What has to be told apart falls into different buckets.
func TestBucketsTellApart(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []time.Duration
	}{
		{"retry_schedule_lateness_seconds", []time.Duration{
			200 * time.Microsecond, time.Millisecond, 4 * time.Millisecond, 6 * time.Millisecond, time.Second, time.Minute,
		}},
		{"retry_task_age_seconds", []time.Duration{
			time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond, time.Second, time.Minute, time.Hour,
			24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 31 * 24 * time.Hour,
		}},
	} {
		seen := map[string]time.Duration{}
		for _, d := range row.values {
			s := metrics.NewService(build())
			s.TaskAge.Observe(d)
			s.Lateness.Observe(d)
			var bucket []string
			for _, b := range scrape(t, s)[row.name].GetMetric()[0].GetHistogram().GetBucket() {
				bucket = append(bucket, fmt.Sprint(b.GetCumulativeCount()))
			}
			key := strings.Join(bucket, "")
			if other, twice := seen[key]; twice {
				t.Errorf("%s: %s and %s are in the same bucket", row.name, other, d)
			}
			seen[key] = d
		}
	}
}

// A store that cannot be read has no figures, rather than zeros that would clear an alert.
func TestAStoreThatCannotBeCounted(t *testing.T) {
	s := metrics.NewService(build())
	s.CountStore(func(ctx) (metrics.StoreFigures, error) { return metrics.StoreFigures{}, errors.New("disk") })
	families := scrape(t, s)
	for _, name := range []string{"retry_tasks", "retry_tasks_due", "retry_dead_letters", "retry_oldest_due_seconds"} {
		if families[name] != nil {
			t.Errorf("%s: got %v, want it absent", name, families[name])
		}
	}
	if families["retry_inflight"] == nil {
		t.Error("the other families are absent, too")
	}
}

// A clock that was set back after the figures were counted makes no negative wait.
func TestADueTimeInTheFuture(t *testing.T) {
	s := metrics.NewService(build())
	s.CountStore(func(ctx) (metrics.StoreFigures, error) {
		return metrics.StoreFigures{OldestDue: time.Now().Add(time.Hour)}, nil
	})
	if got, ok := value(scrape(t, s), "retry_oldest_due_seconds"); got != 0 || !ok {
		t.Errorf("got %v (%v), want 0", got, ok)
	}
}

// Counting takes a tenth of the time at most, however many scrapers ask; and a count that hangs is ended.
func TestAStoreIsNotCountedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, hang := 0, false
		s := metrics.NewService(build())
		s.CountStore(func(ctx context.Context) (metrics.StoreFigures, error) {
			counts++
			if hang {
				<-ctx.Done()
				return metrics.StoreFigures{}, ctx.Err()
			}
			time.Sleep(time.Second)
			return metrics.StoreFigures{OldestDue: time.Now().Add(-time.Minute)}, nil
		})
		for range 20 {
			scrape(t, s)
		}
		if counts != 1 {
			t.Errorf("got %d counts at once, want 1", counts)
		}
		time.Sleep(9 * time.Second)
		if got, _ := value(scrape(t, s), "retry_oldest_due_seconds"); got != 69 {
			t.Errorf("kept figures: got %v s since the oldest was due, want 69", got)
		}
		time.Sleep(time.Second)
		hang = true
		began := time.Now()
		if scrape(t, s)["retry_tasks"] != nil || counts != 2 || time.Since(began) != 5*time.Second {
			t.Errorf("a count that hangs: got %d counts and figures after %s", counts, time.Since(began))
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	const workers, each = 8, 1000
	s := filled()
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := range each {
				s.AttemptEnded(metrics.Success, fmt.Sprintf("p%d", (w+i)%300), time.Millisecond)
				s.Lateness.Observe(time.Millisecond)
				s.InFlight.Inc()
				s.InFlight.Dec()
				if i%200 == 0 {
					scrape(t, s)
				}
			}
		})
	}
	wait.Wait()
	families := scrape(t, s)
	sum := 0.0
	for _, m := range families["retry_attempts_total"].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	if want := float64(workers*each + 2); sum != want {
		t.Errorf("attempts: got %v, want %v", sum, want)
	}
	lateness := families["retry_schedule_lateness_seconds"].GetMetric()[0].GetHistogram()
	if got, want := lateness.GetSampleCount(), uint64(workers*each+1); got != want {
		t.Errorf("lateness: got %d, want %d", got, want)
	}
	if got, want := lateness.GetSampleSum(), 0.001*float64(workers*each+1); got < want-1e-6 || got > want+1e-6 {
		t.Errorf("sum of lateness: got %v, want %v", got, want)
	}
	if got, _ := value(families, "retry_inflight"); got != 1 {
		t.Errorf("in flight: got %v, want 1", got)
	}
}

// An attempt's observations allocate nothing.
func TestAnAttemptAllocatesNothing(t *testing.T) {
	s := filled()
	if got := testing.AllocsPerRun(1000, func() { observeAttempt(s) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

// observeAttempt is what a worker counts for an attempt.
func observeAttempt(s *metrics.Service) {
	s.InFlight.Inc()
	s.Lateness.Observe(time.Millisecond)
	s.AttemptEnded(metrics.Retry, "payments", 20*time.Millisecond)
	s.Delayed("payments", time.Second)
	s.StoreTook("claim", 30*time.Microsecond)
	s.TaskAge.Observe(time.Minute)
	s.InFlight.Dec()
}

func BenchmarkAttempt(b *testing.B) {
	s := filled()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			observeAttempt(s)
		}
	})
}

func BenchmarkScrapeOf200Policies(b *testing.B) {
	s := filled()
	for i := range 200 {
		s.AttemptEnded(metrics.Success, fmt.Sprintf("policy-%d", i), time.Millisecond)
		s.Delayed(fmt.Sprintf("policy-%d", i), time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(s.Text(b.Context(), metrics.Prometheus))))
	}
}
