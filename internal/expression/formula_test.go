package expression

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
)

func parse(t interface {
	Helper()
	Fatal(...any)
}, curve, jitter string) backoff.Spec {
	t.Helper()
	s, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func always(x float64) func() float64 { return func() float64 { return x } }

func TestFormula(t *testing.T) {
	tests := []struct {
		curve string
		n     int
		base  float64 // seconds
	}{
		{"expr:n", 3, 3},
		{"expr:retry", 1, 0},
		{"expr:15 + n^4", 3, 96},
		{"expr:7/2", 1, 3.5},
		{"expr:2 ** n", 10, 1024},
		{"expr:min(60, 2^n)", 10, 60},
		{"expr:max(5, n)", 3, 5},
		{"expr:round(1.6^n)", 3, 4},
		{"expr:1 + n % 2", 3, 2},
		{"expr:7 % 4 + 2.5 % 2 + 9 % n", 4, 4.5},
		{"expr:n % 3 == 0 ? 60 : 5", 6, 60},
		{"expr:n > 3 ? 60 : 5", 4, 60},
		{"expr:prev * 2 + 1", 1, 1},
		{"expr:prev * 2 + 1", 4, 15},
		{"expr:n..2s", 7, 2},
		{"expr: n + 1 ..1m", 1, 2},
		{"expr:rand(30) * n", 2, 30}, // at its middle
		{"expr:2^n", 1000, backoff.Max.Seconds()},
		{"expr:n + prev", 100, 5050},
		{"expr:n + prev", 103, 103 + 5050}, // beyond what is tried, prev stays
	}
	for _, tt := range tests {
		if got := parse(t, tt.curve, "").Base(tt.n); got != time.Duration(math.Round(tt.base*1e9)) {
			t.Errorf("%s: d(%d): got %v, want %v s", tt.curve, tt.n, got, tt.base)
		}
	}
}

// The formulas of Sidekiq and Zizq give the same delays as the built-in curves.
func TestFormulasOfOthers(t *testing.T) {
	zizq, formula := parse(t, "zizq", ""), parse(t, "expr:15 + n^4 + rand(30)*n", "")
	for n := 1; n <= 30; n++ {
		for _, x := range []float64{0, 0.25, 0.5} {
			c := backoff.Chance{Rand: always(x)}
			if got, want := formula.Delay(n, c), zizq.Delay(n, c); got != want {
				t.Errorf("retry %d at %v: got %v, want %v", n, x, got, want)
			}
		}
	}
}

// In a formula with rand, prev is the delay that was slept.
func TestFormulaOfThePreviousDelay(t *testing.T) {
	s := parse(t, "expr:max(1, rand(prev*3))..1m", "")
	for _, tt := range []struct {
		prev, want time.Duration
		x          float64
	}{{0, time.Second, 0.5}, {4 * time.Second, 6 * time.Second, 0.5}, {4 * time.Second, time.Second, 0},
		{time.Minute, time.Minute, 0.9}} {
		if got := s.Delay(7, backoff.Chance{Prev: tt.prev, Rand: always(tt.x)}); got != tt.want {
			t.Errorf("after %v: got %v, want %v", tt.prev, got, tt.want)
		}
	}
}

// Where the random part goes past the cap, the whole range moves down: the delays do not gather at the cap.
func TestFormulaMovesUnderItsCap(t *testing.T) {
	free, capped := parse(t, "expr:15 + n^4 + rand(30)*n", ""), parse(t, "expr:15 + n^4 + rand(30)*n ..5m", "")
	for _, n := range []int{1, 3, 4, 9, 150} {
		least, most := free.Bounds(n)
		down := max(0, most-5*time.Minute)
		for _, x := range []float64{0, 0.25, 0.75} {
			c := backoff.Chance{Rand: always(x)}
			want := max(free.Delay(n, c)-down, 0)
			if width := most - least; width > 5*time.Minute { // then it is the whole of what is below the cap
				want = time.Duration(x * float64(5*time.Minute))
			}
			if got := capped.Delay(n, c); (got - want).Abs() > time.Microsecond {
				t.Errorf("retry %d at %v: got %v, want %v", n, x, got, want)
			}
		}
	}
}

func TestFormulaRefuses(t *testing.T) {
	tests := []struct{ curve, jitter, wrong, hint string }{
		{"expr:", "", "the formula is missing", "expr:15 + n^4"},
		{"expr:m * 2", "", "unknown name m at column 1\n  m * 2\n  ^", "the names are n"},
		{"expr:n *", "", "it ends too early", "the names are n"},
		{"expr:2 - n", "", "for retry 3 it gives -1 seconds", "write expr:max(0, 2 - n)"},
		{"expr:1/(n-1)", "", "for retry 1 it gives infinitely many seconds", "expr:"},
		{"expr:(n-1)/(n-1)", "", "for retry 1 it gives no number of seconds", "expr:"},
		{"expr:rand(4) - 1", "", "for retry 1 it gives -1 seconds", "expr:"},
		{"expr:10^(n^3)", "", "for retry 7 it gives infinitely many seconds", "expr:"},
		{`expr:"a"`, "", "got text", "the names are n"},
		{"expr:n == 1", "", "got true or false", "the names are n"},
		{`expr:rand("a")`, "", "cannot use text", "the names are n"},
		{"expr:5 % (n-1)", "", "for retry 1 it gives no number of seconds", "expr:"},
		{`expr:n % "a"`, "", "mismatched types number and text", "the names are n"},
		{"expr:$env.n", "", "unknown name $env", "the names are n"},
		{"expr:n*5s", "", "bad number", "60 is 1m"},
		{"expr:exit", "", "unknown name exit", "the names are n"},
		{"expr:rand(1)", "full", "does not fit", "none or add:5s"},
		{"expr:rand(1)", "phase", "does not fit", "none or add:5s"},
		{"expr:1 + rand(prev)", "add:1s", "does not fit", "none, and add + rand(5)"},
		{"expr:5..1s", "", "the cap 1s is below the first delay 5s", "expr:"},
		{"expr:" + strings.Repeat("n+", 3000) + "n", "", "longer than", "list:"},
	}
	for _, tt := range tests {
		_, err := backoff.Parse(tt.curve, tt.jitter)
		if err == nil {
			t.Errorf("%s: got no error, want %q", tt.curve, tt.wrong)
			continue
		}
		message, hint, _ := strings.Cut(err.Error(), "\nhint: ")
		if !strings.Contains(message, tt.wrong) || !strings.Contains(hint, tt.hint) || strings.Contains(hint, "hint:") {
			t.Errorf("%s: got %v, want %q, hint %q", tt.curve, err, tt.wrong, tt.hint)
		}
	}
}

// A formula without rand takes every jitter, one with rand only jitter that adds to it. The text is read as the same
// delays.
func TestFormulaWithJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := rapid.SampledFrom([]string{"expr:n", "expr:15 + n^4..1h", "expr:prev*2+1", "expr:n > 3 ? 60 : 5",
			"expr:rand(9)*n + 1", "expr:15 + n^4 + rand(30)*n..5m", "expr:max(1, rand(prev*3))..1m"}).Draw(t, "curve")
		jitters := []string{"", "none"}
		if !strings.Contains(curve, "rand(prev") {
			jitters = append(jitters, "add:3s", "add:1s*n")
		}
		if !strings.Contains(curve, "rand") {
			jitters = append(jitters, "full", "equal", "phase", "30%", "decorrelated")
		}
		s := parse(t, curve, rapid.SampledFrom(jitters).Draw(t, "jitter"))
		again := parse(t, s.Curve(), s.Jitter())
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		c := backoff.Chance{Phase: dice.Float64()}
		for n := 1; n <= 40; n++ {
			x := dice.Float64()
			c.Rand = always(x)
			d := s.Delay(n, c)
			if least, most := s.Bounds(n); d < least || d > most {
				t.Fatalf("%s/%s: retry %d: got %v, want %v to %v", s.Curve(), s.Jitter(), n, d, least, most)
			}
			if other := again.Delay(n, c); other != d {
				t.Fatalf("%s/%s: retry %d: got %v when read again, want %v", s.Curve(), s.Jitter(), n, other, d)
			}
			c.Prev = d
		}
	})
}

// Delays that were computed when the formula was parsed are not computed again.
func TestFormulaWithoutRandomAllocatesNothing(t *testing.T) {
	s := parse(t, "expr:15 + n^4 + prev", "phase")
	c := backoff.Chance{Phase: 0.3, Rand: always(0.5)}
	if n := testing.AllocsPerRun(100, func() { s.Delay(9, c) }); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func FuzzFormula(f *testing.F) {
	for _, seed := range []string{"15 + n^4 + rand(30)*n", "prev*2+1..1m", "min(60, 2^n)", "n ?: 3", "round(n/3)",
		"1e300*n", "-n", "let x = n; x*x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := backoff.Parse("expr:"+text, "")
		if err != nil {
			if !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("%q: got %q, want a hint", text, err)
			}
			return
		}
		for _, n := range []int{1, 2, 99, 100, 101, 1 << 30} {
			if d := s.Delay(n, backoff.Chance{Prev: time.Minute, Rand: always(0.7)}); d < 0 || d > backoff.Max {
				t.Errorf("%q: retry %d: got %v, want 0 to %v", text, n, d, backoff.Max)
			}
		}
	})
}
