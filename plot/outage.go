package plot

import (
	"fmt"
	"time"
)

// Outage is a service that is down at first and then comes back.
type Outage struct {
	Clients  int
	Down     time.Duration
	Capacity int // calls a second that it serves once it is back
	Seed     uint64
}

// Ideal is when the last client would be done if the service were never idle.
func (o Outage) Ideal() time.Duration {
	return o.Down + time.Duration(float64(o.Clients)/float64(o.Capacity)*float64(time.Second))
}

// Run lets the clients of a subject call until each was served. The service has a token bucket that holds one second's calls and
// is full when it comes back; a call that finds no token is rejected.
func (o Outage) Run(s Subject) (Trial, error) {
	if err := o.check(); err != nil {
		return Trial{}, fmt.Errorf("simulate an outage: %w", err)
	}
	c, tokens := newCrowd(s.Policy, o.Clients, o.Seed), newBucket(o)
	c.idle(o.Down)
	for now, ok := c.next(); ok; now, ok = c.next() {
		if tokens.take(now.at) {
			c.serve(now.at)
		} else {
			c.count(c.refuse(now.at))
		}
	}
	return c.trial(s, 0), nil
}

func (o Outage) check() error {
	if err := checkClients(o.Clients); err != nil {
		return err
	}
	if o.Capacity < 1 || o.Capacity > int(time.Second) {
		return fmt.Errorf("a capacity of %d calls a second\nhint: --capacity is 1 or more", o.Capacity)
	}
	return checkTime("--down", o.Down)
}

// bucket is a token bucket as a clock of its own: each call takes it one token ahead, and it falls at most one second behind.
type bucket struct {
	clock, token time.Duration
}

func newBucket(o Outage) *bucket {
	return &bucket{clock: o.Down - time.Second, token: time.Second / time.Duration(o.Capacity)}
}

func (b *bucket) take(now time.Duration) bool {
	clock := max(b.clock, now-time.Second) + b.token
	if clock > now {
		return false
	}
	b.clock = clock
	return true
}
