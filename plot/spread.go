package plot

import (
	"math"
	"time"
)

const (
	fine      = 1024 // parts of an octave that are counted: a wave that falls to both sides of an edge would look like two weaker ones
	parts     = 16   // parts of an octave that are compared
	allOctave = 64   // from a nanosecond to the longest duration
)

// spread counts times on a logarithmic axis, whose octaves begin at a base time.
type spread struct {
	base   float64 // in nanoseconds, at least 1
	first  int     // the bin that a nanosecond falls into
	counts []int64
}

func newSpread(base time.Duration) *spread {
	s := &spread{base: float64(max(base, 1)), counts: make([]int64, (allOctave+1)*fine)}
	s.first = int(math.Floor(fine * math.Log2(1/s.base)))
	return s
}

func (s *spread) bin(t time.Duration) int {
	at := int(math.Floor(fine*math.Log2(float64(max(t, 1))/s.base))) - s.first
	return min(max(at, 0), len(s.counts)-1)
}

func (s *spread) add(t time.Duration) { s.counts[s.bin(t)]++ }

func (s *spread) join(o *spread) {
	for i, n := range o.counts {
		s.counts[i] += n
	}
}

// start is where a bin begins, in nanoseconds.
func (s *spread) start(bin int) float64 {
	return s.base * math.Exp2(float64(bin+s.first)/fine)
}

// median is the middle of what was counted; within a bin times are taken to be even.
func (s *spread) median() time.Duration {
	var all, seen int64
	for _, n := range s.counts {
		all += n
	}
	for i, n := range s.counts {
		if n > 0 && 2*(seen+n) >= all {
			share := (float64(all)/2 - float64(seen)) / float64(n)
			return time.Duration(s.start(i) + share*(s.start(i+1)-s.start(i)))
		}
		seen += n
	}
	return 0
}

// local is the worst part of an octave against the mean of the octave around it, of the parts from the base to the one that holds the
// time last. Where nothing falls into them it is 0.
func (s *spread) local(last time.Duration) (worst float64) {
	const width = fine / parts
	for bin := -s.first; bin <= s.bin(last); bin += width {
		if octave := s.sum(bin-fine/2, fine); octave > 0 {
			worst = max(worst, float64(parts*s.sum(bin, width))/float64(octave))
		}
	}
	return worst
}

// sum counts what fell into some bins.
func (s *spread) sum(first, bins int) (n int64) {
	for i := max(first, 0); i < min(first+bins, len(s.counts)); i++ {
		n += s.counts[i]
	}
	return n
}

// rates are the times a second between one edge and the next. Within a bin they are taken to be even.
func (s *spread) rates(edges []time.Duration) []float64 {
	rates := make([]float64, max(len(edges)-1, 0))
	for i := range rates {
		from, to := float64(edges[i]), float64(edges[i+1])
		if to > from {
			rates[i] = s.between(from, to) / (to - from) * float64(time.Second)
		}
	}
	return rates
}

// between is how many fell between two times.
func (s *spread) between(from, to float64) (n float64) {
	for i := s.bin(time.Duration(from)); i <= s.bin(time.Duration(to)); i++ {
		start, end := s.start(i), s.start(i+1)
		if share := (min(to, end) - max(from, start)) / (end - start); share > 0 {
			n += share * float64(s.counts[i])
		}
	}
	return n
}
