package backoff

import (
	"testing"

	"github.com/10f93571/retry/internal/text"
)

func BenchmarkParse(b *testing.B) {
	for _, of := range []struct{ curve, jitter string }{
		{"exp:1s..1m", ""}, {"constant:0", "none"}, {"poly:15s+n^4", "add:30s*n"}, {"list:1s,5s,1m", "30%"}, {"sidekiq", ""},
	} {
		b.Run(of.curve+" "+of.jitter, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(of.curve, of.jitter); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseDuration(b *testing.B) {
	for _, txt := range []string{"90", "1h30m", "2d"} {
		b.Run(txt, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := text.ParseDuration(txt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
