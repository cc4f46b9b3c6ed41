package backoff

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/text"
)

func TestImpliedJitter(t *testing.T) {
	for curve, want := range map[string]string{
		"constant:5s": "phase", "exp:1s..30s": "phase", "list:1s,2s": "phase", "buckets:3": "none",
		"sidekiq": "none", "zizq": "add:30s*n", "aws": "full", "grpc": "20%", "lock-busy": "30%",
	} {
		if got := parse(t, curve, "").Jitter(); got != want {
			t.Errorf("%s has the jitter %s of its own; want %s", curve, got, want)
		}
	}
	if got := parse(t, "zizq", "equal").Jitter(); got != "equal" {
		t.Errorf("zizq with the jitter equal has %s", got)
	}
}

func TestWith(t *testing.T) {
	for _, row := range []struct {
		from, with [2]string // curve, jitter
		want       string
	}{
		{[2]string{"exp:1s", "full"}, [2]string{"", ""}, "exp:1s/full"},
		{[2]string{"exp:1s", ""}, [2]string{"", "full"}, "exp:1s/full"},
		{[2]string{"exp:1s", "full"}, [2]string{"", "30%"}, "exp:1s/30%"},
		{[2]string{"exp:1s", "full"}, [2]string{"fib:1s", "equal"}, "fib:1s/equal"},
		{[2]string{"buckets:3", ""}, [2]string{"", "add:5s"}, "buckets:3/add:5s"},
		{[2]string{"sidekiq", "add:5s"}, [2]string{"", "none"}, "sidekiq/none"},

		// An explicit jitter stays where it fits.
		{[2]string{"exp:1s", "full"}, [2]string{"fib:1s", ""}, "fib:1s/full"},
		{[2]string{"exp:1s", "add:5s"}, [2]string{"buckets:3", ""}, "buckets:3/add:5s"},
		{[2]string{"exp:1s", "none"}, [2]string{"buckets:3", ""}, "buckets:3/none"},
		{[2]string{"buckets:3", "none"}, [2]string{"exp:1s", ""}, "exp:1s/none"},

		// An implied one gives way to the new curve's own.
		{[2]string{"exp:1s", ""}, [2]string{"buckets:3", ""}, "buckets:3/none"},
		{[2]string{"buckets:3", ""}, [2]string{"exp:1s", ""}, "exp:1s/phase"},
		{[2]string{"zizq", ""}, [2]string{"exp:1s", ""}, "exp:1s/phase"},
		{[2]string{"exp:1s", ""}, [2]string{"aws", ""}, "exp:1s..20s/full"},

		// A preset brings its own, over an explicit one too.
		{[2]string{"exp:1s", "full"}, [2]string{"zizq", ""}, "poly:15s+n^4/add:30s*n"},
		{[2]string{"exp:1s", "full"}, [2]string{"sidekiq", ""}, "sidekiq/none"},
		{[2]string{"exp:1s", "full"}, [2]string{"zizq", "equal"}, "poly:15s+n^4/equal"},
	} {
		from := parse(t, row.from[0], row.from[1])
		got, err := from.With(row.with[0], row.with[1])
		if err != nil || got.Curve()+"/"+got.Jitter() != row.want {
			t.Errorf("%v with %v is %s/%s, %v; want %s", row.from, row.with, got.Curve(), got.Jitter(), err, row.want)
		}
	}
}

// What With brought in counts as asked for or as implied, as it would have in Parse.
func TestWithTwice(t *testing.T) {
	for _, row := range []struct {
		jitter string
		steps  [][2]string
		want   string
	}{
		{"", [][2]string{{"", "full"}, {"fib:1s", ""}}, "fib:1s/full"},
		{"full", [][2]string{{"fib:1s", ""}, {"linear:1s", ""}}, "linear:1s/full"},
		{"full", [][2]string{{"zizq", ""}, {"exp:1s", ""}}, "exp:1s/phase"},
		{"full", [][2]string{{"buckets:3", "none"}, {"exp:1s", ""}}, "exp:1s/none"},
	} {
		s := parse(t, "exp:1s", row.jitter)
		for _, step := range row.steps {
			var err error
			if s, err = s.With(step[0], step[1]); err != nil {
				t.Fatalf("%v: %v", row.steps, err)
			}
		}
		if got := s.Curve() + "/" + s.Jitter(); got != row.want {
			t.Errorf("%v ends at %s; want %s", row.steps, got, row.want)
		}
	}
}

func TestMisfits(t *testing.T) {
	for _, curve := range []string{"buckets:3", "sidekiq"} {
		for _, jitter := range []string{"full", "equal", "decorrelated", "phase", "30%"} {
			_, parsed := Parse(curve, jitter)
			_, added := parse(t, curve, "").With("", jitter)
			for _, err := range []error{parsed, added} {
				if !errors.Is(err, errOwnRandomness) {
					t.Errorf("%s with %s: %v", curve, jitter, err)
					continue
				}
				for _, part := range []string{curve, jitter, "\nhint: ", "add:5s"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s with %s says %q without %q", curve, jitter, err, part)
					}
				}
			}
		}
	}
	if _, err := parse(t, "exp:1s", "full").With("buckets:3", ""); !errors.Is(err, errOwnRandomness) {
		t.Errorf("an explicit jitter that does not fit the new curve: %v", err)
	}
}

func TestWithErrors(t *testing.T) {
	s := parse(t, "exp:1s", "full")
	for _, with := range [][2]string{{"exp:", ""}, {"exp:", "full"}, {"", "ful"}, {"exp:2s", "ful"}} {
		if got, err := s.With(with[0], with[1]); err == nil || got.Curve() != "constant:0s" {
			t.Errorf("With(%q, %q) = %s, %v", with[0], with[1], got.Curve(), err)
		}
	}
	if s.Curve() != "exp:1s" || s.Jitter() != "full" {
		t.Errorf("With changed its receiver to %s/%s", s.Curve(), s.Jitter())
	}
}

func TestBounds(t *testing.T) {
	for _, row := range []struct {
		curve, jitter string
		n             int
		least, most   float64
	}{
		{"exp:10s", "phase", 0, 5, 15},
		{"exp:10s", "phase", 1, 5, 15},
		{"exp:10s", "phase", 2, 10, 20},
		{"exp:10s..12s", "phase", 1, 2, 12},
		{"exp:10s..12s", "phase", 9, 9.6, 12},
		{"list:10s,5s", "phase", 2, 5, 10},
		{"exp:10s..10s", "30%", 1, 4, 10},
		{"exp:1s", "decorrelated", 1, 1, 1},
		{"exp:1s", "decorrelated", 2, 1, 3},
		{"exp:1s", "decorrelated", 4, 1, 27},
		{"exp:1s..20s", "decorrelated", 4, 1, 20},
		{"exp:1s", "decorrelated", 1e9, 1, maxSeconds},
		{"constant:0", "decorrelated", 1e9, 0, 0},
		{"buckets:3", "none", 2, 1, 27},
		{"buckets:3", "add:1s..5s", 2, 2, 32},
		{"sidekiq", "add:5s", 1, 15, 29},
		{"exp:1s", "full", math.MaxInt, 0, maxSeconds},
	} {
		if least, most := parse(t, row.curve, row.jitter).Bounds(row.n); least != sec(row.least) || most != sec(row.most) {
			t.Errorf("%s/%s: wait %d is in [%v, %v]; want [%v, %v]",
				row.curve, row.jitter, row.n, least, most, sec(row.least), sec(row.most))
		}
	}
}

// A Spec that was never parsed waits for nothing, and can be completed.
func TestZeroSpec(t *testing.T) {
	var s Spec
	least, most := s.Bounds(3)
	if s.Curve() != "constant:0s" || s.Jitter() != "none" || s.Base(3)+s.Delay(3, Chance{})+least+most != 0 {
		t.Errorf("the zero Spec is %s/%s", s.Curve(), s.Jitter())
	}
	got, err := s.With("exp:1s", "")
	if err != nil || got.Jitter() != "phase" || got.Base(2) != 2*time.Second {
		t.Errorf("the zero Spec with exp:1s is %s/%s, %v", got.Curve(), got.Jitter(), err)
	}
	if got, err = s.With("", "full"); err != nil || got.Jitter() != "full" {
		t.Errorf("the zero Spec with full is %s/%s, %v", got.Curve(), got.Jitter(), err)
	}
}

func BenchmarkDelay(b *testing.B) {
	for _, curve := range []string{"exp:1s..1h", "fib:1s..1h", "sidekiq"} {
		s := parse(b, curve, "")
		b.Run(curve, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Delay(7, Chance{Phase: 0.3})
			}
		})
	}
}

// A float of nanoseconds is exact for 104 days. Past that, d(1) must still be what was written, and the cap must hold.
func TestNanosecondsPastAFloat(t *testing.T) {
	const d = 200*24*time.Hour + 3
	txt := "exp:" + text.FormatDuration(d)
	if got := parse(t, txt, "none").Base(1); got != d {
		t.Errorf("%s: d(1) = %d; want %d", txt, got, d)
	}
	if got := parse(t, txt+".."+text.FormatDuration(d), "full").Delay(1, Chance{Rand: always(1)}); got != d {
		t.Errorf("%s under a cap of as much: %d; want %d", txt, got, d)
	}
}
