package plot

import (
	"testing"
	"time"
)

// A million tasks with ten retries each.
func BenchmarkStudy(b *testing.B) {
	for _, jitter := range []string{"phase", "full"} {
		b.Run(jitter, func(b *testing.B) {
			s := subject(b, "exp:1s..1m", jitter, 11)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewStudy(s, Options{Tasks: 1_000_000, Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOutage(b *testing.B) {
	s := subject(b, "exp:1s..1m", "phase", 0)
	b.ReportAllocs()
	for b.Loop() {
		o := Outage{Clients: 1_000_000, Down: 2 * time.Minute, Capacity: 10_000, Seed: 1}
		if _, err := o.Run(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLock(b *testing.B) {
	s := subject(b, "exp:1s..1m", "full", 0)
	b.ReportAllocs()
	for b.Loop() {
		l := Lock{Clients: 10_000, Hold: 10 * time.Millisecond, Seed: 1}
		if _, err := l.Run(s); err != nil {
			b.Fatal(err)
		}
	}
}
