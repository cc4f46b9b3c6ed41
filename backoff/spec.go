// Package backoff says how long to wait before a retry: a curve d(n), bent by jitter, held under a cap.
//
// It reads the curves and jitters that a person writes ("exp:1s..30s", "phase") and is pure: no clock, no I/O, no
// randomness of its own. What chance contributes to a delay comes in as a Chance.
package backoff

import (
	"errors"
	"fmt"
	"time"
)

// Spec is a backoff curve with its jitter: everything that decides a delay. An immutable value; the zero Spec waits 0.
type Spec struct {
	shape  curve
	jitter jitter
	chosen bool // the jitter was asked for, not implied by the curve
}

// Chance is what chance and history contribute to one delay.
type Chance struct {
	Phase float64        // the task's fixed u in [0, 1)
	Prev  time.Duration  // the delay before the previous retry, for decorrelated; 0 if none
	Rand  func() float64 // uniform in [0, 1); nil stands for the middle
}

// Parse reads a curve and a jitter. An empty jitter means the curve's own: a preset's, none for a curve with
// randomness of its own, else phase.
func Parse(curve, jitter string) (Spec, error) {
	chosen := jitter != ""
	if p, ok := preset(curve); ok {
		curve = p.Curve
		if !chosen {
			jitter = p.Jitter
		}
	}
	shape, err := parseCurve(curve)
	if err != nil {
		return Spec{}, err
	}
	if jitter == "" {
		return Spec{shape: shape, jitter: ownJitter(shape)}, nil
	}
	bend, err := parseJitter(jitter)
	if err != nil {
		return Spec{}, err
	}
	return join(shape, bend, chosen)
}

// With returns s with its curve and/or jitter replaced; "" keeps. A jitter that was asked for stays where it fits the
// new curve, else it is an error; one that was only implied gives way to the new curve's own, and so does any to a preset's.
func (s Spec) With(curve, jitter string) (Spec, error) {
	_, named := preset(curve)
	switch {
	case curve == "" && jitter == "":
		return s, nil
	case curve == "":
		bend, err := parseJitter(jitter)
		if err != nil {
			return Spec{}, err
		}
		return join(s.curve(), bend, true)
	case jitter == "" && s.chosen && !named:
		shape, err := parseCurve(curve)
		if err != nil {
			return Spec{}, err
		}
		return join(shape, s.bend(), true)
	}
	return Parse(curve, jitter)
}

// Curve is the canonical text of the curve: Parse(s.Curve(), s.Jitter()) has the same delays as s.
func (s Spec) Curve() string { return s.curve().String() }

// Jitter is the canonical text of the jitter.
func (s Spec) Jitter() string { return s.bend().String() }

// Base is d(n), the delay before retry n after the cap and before the jitter; n < 1 counts as 1.
func (s Spec) Base(n int) time.Duration { return s.curve().base(max(n, 1)) }

// Bounds are the shortest and the longest delay that Delay can return before retry n, over every phase and every
// random number, where each Prev was a delay of this Spec.
func (s Spec) Bounds(n int) (least, most time.Duration) {
	n = max(n, 1)
	cv := s.curve()
	dice := cv.reach(n)
	history := Chance{Prev: longestPrev(cv, n)}
	low, _ := s.bend().draw(wait{cv, n, dice.least}, history)
	high, _ := s.bend().draw(wait{cv, n, dice.most()}, history)
	return low.under(cv.limit).least, high.under(cv.limit).most()
}

// Delay is the wait before retry n, in [0, Max] and never over the curve's cap; n < 1 counts as 1.
// A curve with randomness of its own calls c.Rand before the jitter does.
func (s Spec) Delay(n int, c Chance) time.Duration {
	n = max(n, 1)
	cv := s.curve()
	place, share := s.bend().draw(wait{cv, n, cv.roll(n, c)}, c)
	return place.under(cv.limit).at(share)
}

func (s Spec) curve() curve {
	if s.shape.formula == nil {
		return curve{formula: constant{}, limit: unlimited}
	}
	return s.shape
}

func (s Spec) bend() jitter {
	if s.jitter == nil {
		return none{}
	}
	return s.jitter
}

var errOwnRandomness = errors.New("the curve carries its own randomness")

// join puts a curve and a jitter together where they fit: randomness that the curve has can be added to, not replaced.
func join(shape curve, bend jitter, chosen bool) (Spec, error) {
	if f, own := ownRandomness(shape.formula); own {
		if fits, hint := fitting(f, bend); !fits {
			return Spec{}, fmt.Errorf("jitter %q does not fit backoff %q: %w\nhint: with this backoff use the jitter %s", bend, shape, errOwnRandomness, hint)
		}
	}
	return Spec{shape: shape, jitter: bend, chosen: chosen}, nil
}

// ownJitter is what a curve gets when no jitter is asked for.
func ownJitter(shape curve) jitter {
	if _, own := ownRandomness(shape.formula); own {
		return none{}
	}
	return phase{}
}
