package picture

import (
	"math"
	"testing"
	"time"
)

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 3: "3 ns", 1500: "1.5 µs", 12 * time.Millisecond: "12 ms", 1234 * time.Millisecond: "1.23 s", 90 * time.Second: "1.5 min",
		36 * time.Hour: "1.5 d", 20*24*time.Hour + 10*time.Hour: "20.4 d", 2 * year: "2 y", math.MaxInt64: "292 y",
	} {
		if got := Short(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0012: "0.0012", 0.5: "0.5", 1: "1", 2.345: "2.35", 23.45: "23.4", 234.5: "234", 100: "100", 123456: "123456", math.Inf(1): "0",
	} {
		if got := digits(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

func TestOften(t *testing.T) {
	for rate, want := range map[float64]string{0: "0/s", 12: "12/s", 0.1: "0.1/s", 1.0 / 3600: "1/h", 2.0 / 3600 / 24: "2/d"} {
		if got := often(rate); got != want {
			t.Errorf("%v: %q, want %q", rate, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, words := range []string{"", "short", "a text that is too long by far", "語語語語語語語語"} {
		got := shorten(words, 10, false, 60)
		if width(got, 10, false) > 60 {
			t.Errorf("%q is still %v wide", got, width(got, 10, false))
		}
		if width(words, 10, false) <= 60 && got != words {
			t.Errorf("%q became %q", words, got)
		}
	}
}

func TestSteps(t *testing.T) {
	for n, want := range map[int]string{1: "1", 3: "1 2 3", 25: "1 5 10 15 20 25", 99: "1 10 20 30 40 50 60 70 80 90", 999: "1 100 200 300 400 500 600 700 800 900"} {
		got := ""
		for _, m := range steps(n, 10) {
			got += " " + m.words
		}
		if got != " "+want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestShade(t *testing.T) {
	if shade(1, 1) != roles || shade(1, 9) != roles || shade(9, 9) != roles+shades-1 {
		t.Error("the first retry does not begin the scale, or the last does not end it")
	}
	for i := range ink(shades - 1) {
		a, b := light.colour(roles+i), light.colour(roles+i+1)
		if brightness(b.R, b.G, b.B) <= brightness(a.R, a.G, a.B) {
			t.Errorf("shade %d is not brighter than the one before it: in grey they are the same", i+1)
		}
	}
}

func brightness(r, g, b uint8) float64 {
	return 0.2126*math.Pow(float64(r), 2.2) + 0.7152*math.Pow(float64(g), 2.2) + 0.0722*math.Pow(float64(b), 2.2)
}

func TestTogether(t *testing.T) {
	if got := together(90*time.Second, 2*time.Minute, 3*time.Minute); got != "1.5 · 2 · 3 min" {
		t.Errorf("one unit: %s", got)
	}
	if got := together(0, 50*time.Second, time.Minute); got != "0 · 50 s · 1 min" {
		t.Errorf("two units: %s", got)
	}
}
