package plot

import (
	"fmt"
	"time"
)

// Lock is a lock that many clients want once.
type Lock struct {
	Clients int
	Hold    time.Duration // how long each keeps it
	Spin    time.Duration // how long a call waits for it before it is a collision
	Seed    uint64
}

// Ideal is when the last client would be done if the lock were never free.
func (l Lock) Ideal() time.Duration {
	return time.Duration(min(float64(l.Clients)*float64(l.Hold), float64(maxSimulated)))
}

// Run lets the clients of a subject call for the lock until each had it. Calls that wait for it get it in the order in which they
// came; so a call knows at once whether it will be its turn in time, and one that will not spins in vain and then backs off.
func (l Lock) Run(s Subject) (Trial, error) {
	if err := l.check(); err != nil {
		return Trial{}, fmt.Errorf("simulate a lock: %w", err)
	}
	c := newCrowd(s.Policy, l.Clients, l.Seed)
	var free time.Duration // when all who have it or will get it are through
	for now, ok := c.next(); ok; now, ok = c.next() {
		turn := max(free, now.at)
		if turn-now.at > l.Spin {
			c.count(c.refuse(now.at + l.Spin))
			continue
		}
		c.serve(turn)
		free = turn + l.Hold
	}
	return c.trial(s, l.Hold), nil
}

func (l Lock) check() error {
	if err := checkClients(l.Clients); err != nil {
		return err
	}
	if err := checkTime("--hold", l.Hold); err != nil {
		return err
	}
	return checkTime("--spin", l.Spin)
}
