package task

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
)

func drawPolicy(t *rapid.T) *Policy {
	curve := rapid.SampledFrom([]string{"constant:3s", "exp:1s..20s", "linear:2s", "fib:1s", "list:1s,9s,0s", "poly:1s+n^2", "buckets:2", "sidekiq"}).Draw(t, "curve")
	jitter := ""
	if curve != "buckets:2" && curve != "sidekiq" {
		jitter = rapid.SampledFrom([]string{"none", "full", "equal", "phase", "30%", "decorrelated", "add:2s"}).Draw(t, "jitter")
	}
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	p := DefaultPolicy()
	p.Backoff = spec
	p.Attempts = rapid.IntRange(0, 12).Draw(t, "attempts")
	p.Consecutive = rapid.IntRange(1, 3).Draw(t, "consecutive")
	p.Budget = time.Duration(rapid.IntRange(0, 120).Draw(t, "budget")) * time.Second
	p.ResetAfter = time.Duration(rapid.IntRange(0, 5).Draw(t, "reset")) * time.Second
	return &p
}

// Whatever the outcomes: no delay is negative or sleeps past the budget, attempts are kept, and something ends it.
func TestDecideKeepsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		now := epoch
		h := History{Began: now, Phase: dice.Float64()}
		counted := 0
		for range 40 {
			o := Outcome{
				Exit:     rapid.SampledFrom([]int{0, 1, 1, 1, NoExit}).Draw(t, "exit"),
				Duration: time.Duration(rapid.IntRange(1, 8000).Draw(t, "ms")) * time.Millisecond,
			}
			now = now.Add(o.Duration)
			d := Decide(p, h, o, now, dice.Float64)
			if !o.IsCrash() {
				counted++
			}
			h = h.After(p, o, d)
			if p.Attempts > 0 && counted > p.Attempts {
				t.Fatalf("%d attempts of %d", counted, p.Attempts)
			}
			if d.Verdict != VerdictRetry {
				if d.Verdict.Status().Finished() {
					return
				}
				continue
			}
			if d.Delay < 0 {
				t.Fatalf("negative delay %v", d.Delay)
			}
			now = now.Add(d.Delay)
			if p.Budget > 0 && now.Sub(epoch) > p.Budget {
				t.Fatalf("slept until %v of a budget of %v", now.Sub(epoch), p.Budget)
			}
		}
	})
}

// A delay is shortened once at the most: the attempt after it is the last.
func TestDecideShortensOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.Budget, p.Attempts, p.Consecutive = time.Minute, 0, 1
		now, h, shortened := epoch, History{Began: epoch}, 0
		for {
			o := Outcome{Exit: 1, Duration: time.Duration(rapid.IntRange(1, 9000).Draw(t, "ms")) * time.Millisecond}
			now = now.Add(o.Duration)
			d := Decide(p, h, o, now, half)
			h = h.After(p, o, d)
			if shortened > 0 && d.Verdict == VerdictRetry {
				t.Fatalf("another retry after the last one: %+v", d)
			}
			if d.Verdict != VerdictRetry {
				return
			}
			if d.Shortened {
				shortened++
			}
			now = now.Add(d.Delay)
		}
	})
}
