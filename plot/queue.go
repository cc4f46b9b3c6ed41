package plot

import "time"

// call is a client that calls at a time.
type call struct {
	at     time.Duration
	client int32
}

// before orders calls; where two come at once, the client of the lower number is first, so that every run is the same.
func (c call) before(o call) bool {
	return c.at < o.at || c.at == o.at && c.client < o.client
}

// queue is a heap of calls, the earliest first, each with four below it: that is less deep than two.
type queue []call

const below = 4

func (q *queue) pop() call {
	h := *q
	first, last := h[0], h[len(h)-1]
	*q = h[:len(h)-1]
	if len(*q) > 0 {
		q.sink(0, last)
	}
	return first
}

// replace is a pop and a push in one.
func (q *queue) replace(c call) { q.sink(0, c) }

// sink puts a call in at a place, and moves up what comes before it.
func (q *queue) sink(i int, c call) {
	h := *q
	for {
		least := i*below + 1
		if least >= len(h) {
			break
		}
		for j := least + 1; j < min(i*below+1+below, len(h)); j++ {
			if h[j].before(h[least]) {
				least = j
			}
		}
		if !h[least].before(c) {
			break
		}
		h[i], i = h[least], least
	}
	h[i] = c
}
