package plot

import (
	"math"
	"time"

	"github.com/10f93571/retry/task"
)

// failure is how every attempt ends. It takes no time: what is to be seen are the waits.
var failure = task.Outcome{Exit: 1}

// began is when every task begins; any moment would do.
var began = time.Unix(0, 0)

// player plays tasks through, one after the other, and keeps nothing of a task but what it adds to the sums.
type player struct {
	policy  task.Policy
	retries int // the most of one task
	dice    *dice
	seconds *seconds
	spread  *spread // of all retries
	ends    *spread // of the last ones
}

func newPlayer(p task.Policy, retries int, seed uint64) *player {
	base := firstDelay(p)
	return &player{policy: p, retries: retries, dice: newDice(seed), seconds: newSeconds(), spread: newSpread(base), ends: newSpread(base)}
}

// firstDelay is where the octaves begin: the base delay, or the first one that is not 0.
func firstDelay(p task.Policy) time.Duration {
	for n := 1; n <= 100; n++ {
		if d := p.Backoff.Base(n); d > 0 {
			return d
		}
	}
	return time.Second
}

// sums are those that depend on the order of tasks in their last digit, so each shard has its own.
type sums struct {
	waits       []moments // in seconds, by retry
	window      moments
	least, most time.Duration
}

func newSums(retries int) *sums {
	return &sums{waits: make([]moments, retries), least: math.MaxInt64}
}

func (s *sums) join(o *sums) {
	for i := range s.waits {
		s.waits[i].join(o.waits[i])
	}
	s.window.join(o.window)
	s.least, s.most = min(s.least, o.least), max(s.most, o.most)
}

// play plays the tasks from one index to another. Dots are kept where there is room for them.
func (p *player) play(from, to int, s *sums, dots []Dot) []Dot {
	for tk := from; tk < to; tk++ {
		p.dice.of(uint64(tk), 0)
		h := task.History{Began: began, Phase: p.dice.phase(uint64(tk))}
		var at time.Duration
		for n := range p.retries {
			d := task.Decide(&p.policy, h, failure, began.Add(at), p.dice.next)
			if d.Verdict != task.VerdictRetry {
				break
			}
			h = h.After(&p.policy, failure, d)
			at = later(at, d.Delay)
			s.waits[n].add(d.Delay.Seconds())
			p.seconds.add(at)
			p.spread.add(at)
			if len(dots) < cap(dots) {
				dots = append(dots, Dot{Task: tk, Retry: n + 1, At: at})
			}
		}
		p.ends.add(at)
		s.window.add(at.Seconds())
		s.least, s.most = min(s.least, at), max(s.most, at)
		p.seconds.fit()
	}
	return dots
}

// later saturates: a thousand delays of a year are more than a duration holds.
func later(at, delay time.Duration) time.Duration {
	return at + min(delay, math.MaxInt64-at)
}

func (p *player) join(o *player) {
	p.seconds.join(o.seconds)
	p.spread.join(o.spread)
	p.ends.join(o.ends)
}
