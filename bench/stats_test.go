package main

import (
	"slices"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		name string
		all  []time.Duration
		want time.Duration
	}{
		{"none", nil, 0},
		{"one", []time.Duration{7}, 7},
		{"odd, unsorted", []time.Duration{9, 1, 5}, 5},
		{"even: the mean of the middle two", []time.Duration{8, 2, 4, 100}, 6},
		{"an outlier moves nothing", []time.Duration{1, 2, 3, 4, time.Hour}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := median(test.all); got != test.want {
				t.Errorf("median(%v) = %d, want %d", test.all, got, test.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	ten := []time.Duration{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for _, test := range []struct {
		name string
		all  []time.Duration
		p    float64
		want time.Duration
	}{
		{"none", nil, 90, 0},
		{"one", []time.Duration{3}, 90, 3},
		{"the least", ten, 0, 1},
		{"exactly on a rank", ten, 90, 9},
		{"just past a rank", ten, 90.1, 10},
		{"the greatest", ten, 100, 10},
		{"of two", []time.Duration{2, 1}, 50, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := percentile(test.all, test.p); got != test.want {
				t.Errorf("percentile(%v, %v) = %d, want %d", test.all, test.p, got, test.want)
			}
		})
	}
}

func TestStatisticsLeaveTheirInputAlone(t *testing.T) {
	all := []time.Duration{3, 1, 2}
	median(all)
	percentile(all, 90)
	if !slices.Equal(all, []time.Duration{3, 1, 2}) {
		t.Errorf("sorted in place: %v", all)
	}
}

func TestRatio(t *testing.T) {
	if r := ratio(3, 2); r == nil || *r != 1.5 {
		t.Errorf("ratio(3, 2) = %v, want 1.5", r)
	}
	if r := ratio(3, 0); r != nil {
		t.Errorf("ratio(3, 0) = %v, want nil", *r)
	}
}
