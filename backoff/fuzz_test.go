package backoff

import (
	"strings"
	"testing"
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

func wantHint(t *testing.T, err error) {
	if strings.Count(err.Error(), "\nhint: ") != 1 {
		t.Fatalf("the error %q has no hint", err)
	}
}
