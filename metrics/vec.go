package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxLabels is the most labels of a family; a key of fixed size makes finding one free of allocations.
const maxLabels = 2

type labelValues [maxLabels]string

// vec holds the members of a family by the values of their labels. A reader takes no lock: a new member makes a new
// map, which happens rarely, since the values are few.
type vec[T any] struct {
	labels  []string
	create  func() *T
	members atomic.Pointer[map[labelValues]*T]
	adding  sync.Mutex
}

func newVec[T any](labels []string, create func() *T) *vec[T] {
	if len(labels) == 0 || len(labels) > maxLabels {
		panic(fmt.Sprintf("metrics: %d labels, want 1 to %d", len(labels), maxLabels))
	}
	v := &vec[T]{labels: labels, create: create}
	v.members.Store(&map[labelValues]*T{})
	return v
}

// With returns the member whose labels have these values, in the order of the labels. Their values have to be few:
// a member stays for as long as the process lives.
func (v *vec[T]) With(values ...string) *T {
	if len(values) != len(v.labels) {
		panic("metrics: as many values as labels are needed")
	}
	var key labelValues
	copy(key[:], values)
	if member := (*v.members.Load())[key]; member != nil {
		return member
	}
	return v.add(key)
}

func (v *vec[T]) add(key labelValues) *T {
	v.adding.Lock()
	defer v.adding.Unlock()
	members := *v.members.Load()
	if member := members[key]; member != nil {
		return member
	}
	for i := range key {
		key[i] = strings.Clone(key[i]) // the value may be a part of something large
	}
	members = maps.Clone(members)
	member := v.create()
	members[key] = member
	v.members.Store(&members)
	return member
}

// each calls a function with every member, sorted by their values.
func (v *vec[T]) each(do func(labels []Label, member *T)) {
	members := *v.members.Load()
	keys := slices.SortedFunc(maps.Keys(members), func(a, b labelValues) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	for _, key := range keys {
		labels := make([]Label, len(v.labels))
		for i, name := range v.labels {
			labels[i] = Label{name, key[i]}
		}
		do(labels, members[key])
	}
}

// CounterVec is a family of counters.
type CounterVec struct{ *vec[Counter] }

// NewCounterVec makes a family of counters with one or two labels.
func (r *Registry) NewCounterVec(name, help string, labels ...string) CounterVec {
	v := newVec(labels, func() *Counter { return new(Counter) })
	r.Collect(func(_ context.Context, t *Text) {
		t.Family(name, help, TypeCounter)
		v.each(func(labels []Label, c *Counter) { t.Sample(float64(c.Value()), labels...) })
	})
	return CounterVec{v}
}

// HistogramVec is a family of histograms.
type HistogramVec struct{ *vec[Histogram] }

// NewHistogramVec makes a family of histograms of durations with one or two labels.
func (r *Registry) NewHistogramVec(name, help string, bounds []time.Duration, labels ...string) HistogramVec {
	v := newVec(labels, func() *Histogram { return newHistogram(bounds) })
	r.Collect(func(_ context.Context, t *Text) {
		t.Family(name, help, TypeHistogram)
		v.each(func(labels []Label, h *Histogram) { t.histogram(h, labels...) })
	})
	return HistogramVec{v}
}
