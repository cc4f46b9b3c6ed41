package plot

import "math"

// moments are the count, mean and variance of a stream (Welford 1962), in one pass and without loss of digits.
type moments struct {
	count   int
	mean, m float64 // m is the sum of the squared distances from the mean
}

func (s *moments) add(x float64) {
	s.count++
	away := x - s.mean
	s.mean += away / float64(s.count)
	s.m += away * (x - s.mean)
}

// join adds another stream (Chan, Golub, LeVeque 1979). The order of joining decides about the last digit.
func (s *moments) join(o moments) {
	if o.count == 0 {
		return
	}
	all := s.count + o.count
	away := o.mean - s.mean
	s.m += o.m + away*away*float64(s.count)*float64(o.count)/float64(all)
	s.mean += away * float64(o.count) / float64(all)
	s.count = all
}

// cv is the coefficient of variation; of nothing but zeros it is 0.
func (s *moments) cv() float64 {
	if s.count == 0 || s.mean == 0 {
		return 0
	}
	return math.Sqrt(s.m/float64(s.count)) / s.mean
}
