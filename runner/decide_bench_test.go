package runner

import (
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
)

func BenchmarkDecide(b *testing.B) {
	listed, err := ParseConditions([]string{"1,2,75", "100-120", "timeout"})
	if err != nil {
		b.Fatal(err)
	}
	slow, err := backoff.Parse("fib:5s..10m", "full")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Policy)
		made   int
		exit   int
	}{
		{"success", func(*Policy) {}, 1, 0},
		{"failure", func(*Policy) {}, 2, 75},
		{"lists", func(p *Policy) { p.RetryOn, p.StopOn = listed, listed[:1] }, 2, 110},
		{"rule and budget", func(p *Policy) {
			p.Rules, p.Budget = []Rule{{When: listed[0], Backoff: slow}, {When: listed[2], Backoff: slow}}, time.Hour
		}, 3, 75},
		{"the last attempt", func(*Policy) {}, 5, 75},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := DefaultPolicy()
			c.change(&p)
			h := History{Began: epoch, Made: c.made, Counted: c.made - 1, Phase: 0.3}
			outcome := exit(c.exit)
			b.ReportAllocs()
			for b.Loop() {
				Decide(&p, h, outcome, epoch, half)
			}
		})
	}
}
