// Package metrics counts what the service does, and writes it as text for a monitoring system. Counting is cheap:
// an observation with known labels is a few atomic additions and allocates nothing. It imports nothing of ours.
package metrics

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"
)

// Registry holds families of metrics in the order in which they were made. Make them all before the first Write.
type Registry struct {
	families []func(context.Context, *Text)
}

// Collect adds a function that writes families when somebody asks for them, such as those that a store has to count.
// What it cannot find out it leaves out.
func (r *Registry) Collect(write func(context.Context, *Text)) {
	r.families = append(r.families, write)
}

// Text returns all families in a format.
func (r *Registry) Text(ctx context.Context, f Format) []byte {
	t := NewText(f)
	for _, write := range r.families {
		write(ctx, t)
	}
	return t.End()
}

// Write writes all families in a format.
func (r *Registry) Write(ctx context.Context, w io.Writer, f Format) error {
	_, err := w.Write(r.Text(ctx, f))
	return err
}

// ServeHTTP answers a scraper in the format that its Accept header asks for.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	format := Negotiate(request.Header)
	w.Header().Set("Content-Type", format.ContentType())
	w.Header().Add("Vary", "Accept")
	_ = r.Write(request.Context(), w, format) // a scraper that went away needs no answer
}

// Counter is a count that only rises.
type Counter struct{ value atomic.Uint64 }

// Inc adds 1.
func (c *Counter) Inc() { c.value.Add(1) }

// Add adds n.
func (c *Counter) Add(n uint64) { c.value.Add(n) }

// Value is the count so far.
func (c *Counter) Value() uint64 { return c.value.Load() }

// NewCounter makes a counter. Its name ends in _total.
func (r *Registry) NewCounter(name, help string) *Counter {
	c := new(Counter)
	r.Collect(func(_ context.Context, t *Text) {
		t.Family(name, help, TypeCounter)
		t.Sample(float64(c.Value()))
	})
	return c
}

// Gauge is a number that rises and falls.
type Gauge struct{ value atomic.Int64 }

// Inc adds 1.
func (g *Gauge) Inc() { g.value.Add(1) }

// Dec subtracts 1.
func (g *Gauge) Dec() { g.value.Add(-1) }

// Set replaces the number.
func (g *Gauge) Set(n int64) { g.value.Store(n) }

// Value is the number now.
func (g *Gauge) Value() int64 { return g.value.Load() }

// NewGauge makes a gauge.
func (r *Registry) NewGauge(name, help string) *Gauge {
	g := new(Gauge)
	r.NewGaugeFunc(name, help, func() float64 { return float64(g.Value()) })
	return g
}

// NewGaugeFunc makes a gauge that asks a function for its value at each scrape.
func (r *Registry) NewGaugeFunc(name, help string, value func() float64) {
	r.Collect(func(_ context.Context, t *Text) {
		t.Family(name, help, TypeGauge)
		t.Sample(value())
	})
}

// Histogram counts durations in fixed buckets.
type Histogram struct {
	bounds []time.Duration // rising; a bucket includes its bound
	counts []atomic.Uint64 // of each bucket alone; the last one has no bound
	sum    atomic.Uint64   // the bits of a float64, in seconds: nanoseconds would overflow an int64 within years
}

func newHistogram(bounds []time.Duration) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// NewHistogram makes a histogram of durations. Its name ends in _seconds.
func (r *Registry) NewHistogram(name, help string, bounds []time.Duration) *Histogram {
	h := newHistogram(bounds)
	r.Collect(func(_ context.Context, t *Text) {
		t.Family(name, help, TypeHistogram)
		t.histogram(h)
	})
	return h
}

// Observe counts a duration. A negative one, of a clock that was set back, counts as 0: a sum may not fall.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	bucket := 0
	for bucket < len(h.bounds) && d > h.bounds[bucket] {
		bucket++
	}
	h.counts[bucket].Add(1)
	for {
		old := h.sum.Load()
		sum := math.Float64bits(math.Float64frombits(old) + d.Seconds())
		if h.sum.CompareAndSwap(old, sum) {
			return
		}
	}
}

// Count is how many durations were counted.
func (h *Histogram) Count() uint64 {
	var n uint64
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}
