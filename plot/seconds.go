package plot

import "time"

const (
	pageSize = 1024
	maxPages = 1 << 12 // 16 MiB: 48 days with a retry in every second
)

type page [pageSize]uint32

// seconds counts retries by the second. Pages that no retry falls into are not there; where there would be too many, the steps
// become longer. How many retries a page holds does not depend on who counted them first, so any order gives the same counts.
type seconds struct {
	step  time.Duration
	pages map[int64]*page
	most  int

	latest int64 // the number of near
	near   *page
}

func newSeconds() *seconds {
	return &seconds{step: time.Second, pages: map[int64]*page{}, most: maxPages}
}

func (s *seconds) add(t time.Duration) { s.count(int64(t/s.step), 1) }

func (s *seconds) count(bin int64, n uint32) {
	number := bin / pageSize
	if s.near == nil || number != s.latest {
		s.turn(number)
	}
	s.near[bin%pageSize] += n
}

// turn opens a page. One too many is allowed until the next is opened.
func (s *seconds) turn(number int64) {
	p := s.pages[number]
	if p == nil {
		p = new(page)
		s.pages[number] = p
	}
	s.latest, s.near = number, p
}

// fit doubles the steps until there are no more pages than allowed.
func (s *seconds) fit() {
	for len(s.pages) > s.most {
		s.widen(2 * s.step)
	}
}

func (s *seconds) widen(step time.Duration) {
	if step == s.step {
		return
	}
	wide := &seconds{step: step, pages: map[int64]*page{}, most: s.most}
	wide.take(s)
	*s = *wide
}

// take adds the counts of another, whose steps are not longer.
func (s *seconds) take(o *seconds) {
	ratio := int64(s.step / o.step)
	for number, p := range o.pages {
		for i, n := range p {
			if n > 0 {
				s.count((number*pageSize+int64(i))/ratio, n)
			}
		}
	}
}

// join adds the counts of another, in the longer of their steps.
func (s *seconds) join(o *seconds) {
	step := max(s.step, o.step)
	s.widen(step)
	o.widen(step)
	s.take(o)
	s.fit()
}

// load sums up what happened after the first second. Idle seconds count up to the time until.
func (s *seconds) load(until time.Duration) Load {
	l := Load{Step: s.step}
	var busy, last, all int64
	end := int64(until / s.step)
	for number, p := range s.pages {
		for i, n := range p {
			bin := number*pageSize + int64(i)
			if n == 0 || bin == 0 {
				continue
			}
			if bin <= end {
				busy++
			}
			last, all = max(last, bin), all+int64(n)
			l.Peak = max(l.Peak, float64(n)/s.step.Seconds())
		}
	}
	if last > 0 {
		l.Mean = float64(all) / float64(last) / s.step.Seconds()
	}
	if end > 0 {
		l.Idle = 1 - float64(busy)/float64(end)
	}
	return l
}
