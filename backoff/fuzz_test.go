package backoff

import (
	"strings"
	"testing"
	"time"
)

func FuzzParse(f *testing.F) {
	for _, curve := range []string{
		"constant:5m", "fixed:0", "linear:5s+2s..1m", "exp:1s*1.5..30s", "fib:1s..1m", "poly:15s+n^2.5..1h",
		"list:1s,2s,5s,1m", "buckets:3", "sidekiq", "zizq", "exp:0.5.5", "exp:1...5", "expr:n^4", "expo:1s", "", ":",
	} {
		for _, jitter := range []string{"", "none", "decorrelated", "phase", "±30%", "add:1s..5s*n", "add:", "%"} {
			f.Add(curve, jitter, 3)
		}
	}
	f.Fuzz(func(t *testing.T, curve, jitter string, n int) {
		s, err := Parse(curve, jitter)
		if err != nil {
			wantHint(t, err)
			return
		}
		if err := comesBack(s, n); err != nil {
			t.Fatal(err)
		}
		least, most := s.Bounds(n)
		got := s.Delay(n, Chance{Phase: 0.3, Rand: always(0.7)})
		if least < 0 || got < least || got > most || most > Max {
			t.Fatalf("delay %d is %v in [%v, %v]", n, got, least, most)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"30", "0.5", "1h30m", "1w2d3h", "1.5d", "-1s", "", "1e3", "NaN", "9223372036854775808ns", "106751.99d", "5µs"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if goes, goErr := time.ParseDuration(text); goErr == nil && !strings.HasPrefix(text, "-") && (err != nil || d != goes) {
			t.Fatalf("%q is %v, %v; Go reads %v", text, d, err, goes)
		}
		if err != nil {
			wantHint(t, err)
			return
		}
		if again, err := ParseDuration(FormatDuration(d)); d < 0 || err != nil || again != d {
			t.Fatalf("%q is %d, which comes back as %d, %v", text, d, again, err)
		}
	})
}

func wantHint(t *testing.T, err error) {
	if strings.Count(err.Error(), "\nhint: ") != 1 {
		t.Fatalf("the error %q has no hint", err)
	}
}
