package plot

import (
	"time"

	"github.com/10f93571/retry/backoff"
)

// clipped is how many times the longest delay without chance a range may reach on an axis: one that could grow without an end would press
// all else into a corner.
const clipped = 4

// DelayAxis is an axis for the delays of several studies that are to be compared.
func DelayAxis(studies []Study) Axis {
	var least, most, usual time.Duration
	below := time.Duration(1)
	for _, s := range studies {
		for _, r := range s.Retries {
			if r.Least == 0 {
				below = 4 // a logarithmic axis has no 0: the range ends where it does, and has to be seen to go on
			}
			usual = max(usual, r.Base, r.Mean)
			least = lesser(lesser(least, r.Least), lesser(r.Base, r.Mean))
			most = max(most, r.Most)
		}
	}
	most = max(min(most, clipped*min(usual, backoff.Max)), usual)
	return NewAxis(least/below, orSecond(most))
}

// growth is the ratio of a policy's waits from which on its retries are shown on a logarithmic axis. Waits that hardly grow are even in
// time, and an axis that is not would hide it.
const growth = 8

// TimeAxis is an axis for the retries of several studies that are to be compared.
func TimeAxis(studies []Study) Axis {
	var first, shortest, longest time.Duration
	grows := false
	for _, s := range studies {
		var least, most time.Duration // of the mean waits
		for _, r := range s.Retries {
			least, most = lesser(least, r.Mean), max(most, r.Mean)
		}
		grows = grows || least > 0 && most/growth >= least
		for _, d := range s.Dots {
			first = lesser(first, max(d.At, least/16)) // the few that come at once would take half of the axis
		}
		shortest, longest = lesser(shortest, s.Window.Most), max(longest, s.Window.Most)
	}
	if grows || longest/(2*growth) >= shortest {
		return NewAxis(first, orSecond(longest))
	}
	return Axis{Most: orSecond(longest)}
}

// lesser is the shorter one of two times; 0 is none.
func lesser(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// orSecond gives an axis on which everything is 0 a length.
func orSecond(t time.Duration) time.Duration {
	if t <= 0 {
		return time.Second
	}
	return t
}
