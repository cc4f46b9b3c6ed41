package metrics

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// StoreFigures are what a store counts for a scrape.
type StoreFigures struct {
	Tasks       map[string]int64 // by status; one that is absent is 0
	Due         int64            // PENDING tasks whose time has come
	OldestDue   time.Time        // when the one of them that waits longest was due; zero where there is none
	DeadLetters map[string]int64 // EXHAUSTED and FAILED tasks by the name of their policy; empty for none
}

// Statuses returns the statuses that retry_tasks tells apart.
func Statuses() []string {
	return []string{"PENDING", "IN_FLIGHT", "SUCCEEDED", "EXHAUSTED", "FAILED", "CANCELLED"}
}

const (
	countPatience = 5 * time.Second // a scraper gives up after 10 s by default
	countShare    = 10              // figures are kept for this many times as long as it took to count them
)

// counter asks a store for its figures, at most a part of the time: counting a million rows is work, and scrapers
// are many.
type counter struct {
	count func(context.Context) (StoreFigures, error)
	now   func() time.Time

	lock  sync.Mutex
	kept  StoreFigures
	until time.Time // the kept figures may be used until then
}

// CountStore has the figures of a store in each scrape. Where they cannot be had, their families are left out.
func (s *Service) CountStore(count func(context.Context) (StoreFigures, error)) {
	c := &counter{count: count, now: time.Now}
	s.Collect(func(ctx context.Context, t *Text) {
		if figures, err := c.figures(ctx); err == nil {
			s.writeFigures(t, &figures, c.now())
		}
	})
}

func (c *counter) figures(ctx context.Context) (StoreFigures, error) {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	c.lock.Lock()
	defer c.lock.Unlock()
	began := c.now()
	if began.Before(c.until) {
		return c.kept, nil
	}
	figures, err := c.count(ctx)
	if err != nil {
		return StoreFigures{}, err
	}
	ended := c.now()
	c.kept, c.until = figures, ended.Add(countShare*ended.Sub(began))
	return figures, nil
}

func (s *Service) writeFigures(t *Text, f *StoreFigures, now time.Time) {
	t.Family("retry_tasks", "Tasks in the store by status.", TypeGauge)
	for _, status := range Statuses() {
		t.Sample(float64(f.Tasks[status]), Label{"status", status})
	}
	t.Family("retry_tasks_due", "Pending tasks whose time has come.", TypeGauge)
	t.Sample(float64(f.Due))
	t.Family("retry_oldest_due_seconds", "How long the task that waits longest has been due; 0 where none is.", TypeGauge)
	oldest := time.Duration(0)
	if !f.OldestDue.IsZero() {
		oldest = max(0, now.Sub(f.OldestDue))
	}
	t.Sample(oldest.Seconds())

	dead := map[string]int64{InlinePolicy: 0} // a sample in any case: nothing dead is not the same as nothing known
	for _, policy := range slices.Sorted(maps.Keys(f.DeadLetters)) {
		dead[s.policy(policy)] += f.DeadLetters[policy]
	}
	t.Family("retry_dead_letters", "Exhausted and failed tasks by policy.", TypeGauge)
	for _, policy := range slices.Sorted(maps.Keys(dead)) {
		t.Sample(float64(dead[policy]), Label{"policy", policy})
	}
}
