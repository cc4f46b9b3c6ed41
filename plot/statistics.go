package plot

import (
	"math"
	"time"
)

// moments are the count, mean and variance of a stream of numbers, computed in one pass without cancellation (Welford
// 1962).
type moments struct {
	count   int
	mean    float64
	squares float64 // sum of the squared differences from the mean
}

func (m *moments) add(x float64) {
	m.count++
	difference := x - m.mean
	m.mean += difference / float64(m.count)
	m.squares += difference * (x - m.mean)
}

// merge adds another stream (Chan, Golub, LeVeque 1979). The order of merging changes the last digit.
func (m *moments) merge(o moments) {
	if o.count == 0 {
		return
	}
	all := m.count + o.count
	difference := o.mean - m.mean
	m.squares += o.squares + difference*difference*float64(m.count)*float64(o.count)/float64(all)
	m.mean += difference * float64(o.count) / float64(all)
	m.count = all
}

// cv is the coefficient of variation; it is 0 where all numbers are 0.
func (m *moments) cv() float64 {
	if m.count == 0 || m.mean == 0 {
		return 0
	}
	return math.Sqrt(m.squares/float64(m.count)) / m.mean
}

const (
	// BinsPerOctave is the resolution of the counted times. It is fine enough that a wave of retries which falls on an
	// edge between two of the compared parts is not seen as two weaker waves.
	BinsPerOctave  = 1024
	partsPerOctave = 16 // the parts that are compared for Load.Local
	octaves        = 64 // from a nanosecond to the longest duration
)

// histogram counts times on a logarithmic axis. An octave begins at the base time.
type histogram struct {
	base   float64 // in nanoseconds, at least 1
	first  int     // the logarithmic bin of one nanosecond, which counts[0] holds
	counts []int64
}

func newHistogram(base time.Duration) *histogram {
	h := &histogram{base: float64(max(base, 1)), counts: make([]int64, (octaves+1)*BinsPerOctave)}
	h.first = int(math.Floor(BinsPerOctave * math.Log2(1/h.base)))
	return h
}

func (h *histogram) bin(t time.Duration) int {
	i := int(math.Floor(BinsPerOctave*math.Log2(float64(max(t, 1))/h.base))) - h.first
	return min(max(i, 0), len(h.counts)-1)
}

func (h *histogram) add(t time.Duration) { h.counts[h.bin(t)]++ }

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
}

// start is where a bin begins, in nanoseconds.
func (h *histogram) start(bin int) float64 {
	return h.base * math.Exp2(float64(bin+h.first)/BinsPerOctave)
}

// median interpolates within its bin.
func (h *histogram) median() time.Duration {
	var all, seen int64
	for _, n := range h.counts {
		all += n
	}
	for i, n := range h.counts {
		if n > 0 && 2*(seen+n) >= all {
			share := (float64(all)/2 - float64(seen)) / float64(n)
			return time.Duration(h.start(i) + share*(h.start(i+1)-h.start(i)))
		}
		seen += n
	}
	return 0
}

// local is the highest count of a part of an octave, relative to the mean of the octave around it. The parts are those
// from the base time to the time last. It is 0 where no time was counted there.
func (h *histogram) local(last time.Duration) (worst float64) {
	const width = BinsPerOctave / partsPerOctave
	for bin := -h.first; bin <= h.bin(last); bin += width {
		if octave := h.sum(bin-BinsPerOctave/2, BinsPerOctave); octave > 0 {
			worst = max(worst, float64(partsPerOctave*h.sum(bin, width))/float64(octave))
		}
	}
	return worst
}

func (h *histogram) sum(first, bins int) (n int64) {
	for i := max(first, 0); i < min(first+bins, len(h.counts)); i++ {
		n += h.counts[i]
	}
	return n
}

// Rates are the retries per second between each two neighbouring edges. Times are assumed to be even within a bin.
func (l Load) Rates(edges []time.Duration) []float64 {
	rates := make([]float64, max(len(edges)-1, 0))
	for i := range rates {
		from, to := float64(edges[i]), float64(edges[i+1])
		if to > from {
			rates[i] = l.histogram.between(from, to) / (to - from) * float64(time.Second)
		}
	}
	return rates
}

func (h *histogram) between(from, to float64) (n float64) {
	for i := h.bin(time.Duration(from)); i <= h.bin(time.Duration(to)); i++ {
		start, end := h.start(i), h.start(i+1)
		if share := (min(to, end) - max(from, start)) / (end - start); share > 0 {
			n += share * float64(h.counts[i])
		}
	}
	return n
}

// maxBins bounds the memory of secondCounts.
const maxBins = 1 << 20

// secondCounts counts retries per second. Where there would be too many counts, it makes its bins longer than a second.
// The counts do not depend on the order of the additions.
type secondCounts struct {
	step   time.Duration
	counts map[int64]uint32 // by bin
}

// add may count in more bins than allowed; fit is called after each task.
func (s *secondCounts) add(t time.Duration) { s.counts[int64(t/s.step)]++ }

// fit doubles the length of the bins until there are no more than allowed.
func (s *secondCounts) fit(bins int) {
	for len(s.counts) > bins {
		wide := &secondCounts{2 * s.step, map[int64]uint32{}}
		wide.merge(s)
		*s = *wide
	}
}

// merge adds the counts of another, in the longer of their bins.
func (s *secondCounts) merge(o *secondCounts) {
	if s.step < o.step {
		*s, *o = *o, *s
	}
	for bin, n := range o.counts {
		s.counts[bin/int64(s.step/o.step)] += n
	}
}

// load summarises everything after the first bin. Idle bins are counted until the given time.
func (s *secondCounts) load(until time.Duration) (l Load) {
	var busy, last, all int64
	end := int64(until / s.step)
	delete(s.counts, 0)
	for bin, n := range s.counts {
		if bin <= end {
			busy++
		}
		last, all = max(last, bin), all+int64(n)
		l.Peak = max(l.Peak, float64(n)/s.step.Seconds())
	}
	if last > 0 {
		l.Mean = float64(all) / float64(last) / s.step.Seconds()
	}
	if end > 0 {
		l.Idle = 1 - float64(busy)/float64(end)
	}
	return l
}
