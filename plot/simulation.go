package plot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// MaxClients is how many clients can be simulated.
const MaxClients = 10_000_000

// Simulation is a situation in which the clients of a subject compete.
type Simulation interface {
	Run(s Subject) (Trial, error)
	Ideal() time.Duration
}

// Trial is the result for one subject when its clients call a service, or for a lock, until each has been served.
type Trial struct {
	Subject Subject
	Clients int
	Calls   int
	Refused int           // calls that the service refused although it was back, or that did not get the lock
	ByWave  []int         // the same by wave: of the first calls, the first retries and so on, at most maxWaves of them
	Wait    Quantiles     // from time 0 until a client was served, or had the lock
	Done    Quantiles     // until it was served, or had released the lock
	Left    int           // clients that were not served when the simulation stopped
	Ended   time.Duration // the time of the last simulated call
}

// maxWaves is how many waves are counted one by one.
const maxWaves = 100

// Never is a quantile that was not reached before the simulation stopped.
const Never time.Duration = -1

// Quantiles are of all clients; those that were never served come last.
type Quantiles struct{ P50, P95, P99, All time.Duration }

// newQuantiles sorts the times of the clients that were served, and adds so much to each quantile.
func newQuantiles(times []time.Duration, clients int, more time.Duration) Quantiles {
	slices.Sort(times)
	at := func(percent int) time.Duration {
		rank := (clients*percent + 99) / 100
		if rank > len(times) {
			return Never
		}
		return times[rank-1] + more
	}
	return Quantiles{at(50), at(95), at(99), at(100)}
}

// Lock is a lock that each of many clients needs once.
type Lock struct {
	Clients int
	Hold    time.Duration // how long a client holds it
	Spin    time.Duration // how long a call waits for it before the call counts as a collision
	Seed    uint64
}

// Ideal is when the last client would be done if the lock were always held.
func (l Lock) Ideal() time.Duration {
	return time.Duration(min(float64(l.Clients)*float64(l.Hold), float64(maxSimulated)))
}

// Run lets the clients of a subject call until each has had the lock. Waiting calls get it in the order in which they
// came. So it is known at once whether a call will get the lock in time; a call that will not waits for Spin and then
// backs off.
func (l Lock) Run(s Subject) (Trial, error) {
	err := cmp.Or(checkClients(l.Clients), checkTime("--hold", l.Hold), checkTime("--spin", l.Spin))
	if err != nil {
		return Trial{}, fmt.Errorf("simulate a lock: %w", err)
	}
	g := newClientGroup(s.Policy, l.Clients, l.Seed)
	var free time.Duration // when all clients that hold it or will get it are done
	for now, ok := g.next(); ok; now, ok = g.next() {
		acquired := max(free, now.at)
		if acquired-now.at > l.Spin {
			g.refuse(now.at + l.Spin)
			continue
		}
		g.serve(acquired)
		free = acquired + l.Hold
	}
	return g.trial(s, l.Hold), nil
}

// Outage is a service that is down at first and then comes back.
type Outage struct {
	Clients  int
	Down     time.Duration
	Capacity int // calls per second that it serves once it is back
	Seed     uint64
}

// Ideal is when the last client would be done if the service were always busy.
func (o Outage) Ideal() time.Duration {
	return o.Down + time.Duration(float64(o.Clients)/float64(o.Capacity)*float64(time.Second))
}

// Run lets the clients of a subject call until each was served. The service has a token bucket that holds the calls of
// one second and is full when the service comes back; a call that finds no token is refused.
func (o Outage) Run(s Subject) (Trial, error) {
	if err := cmp.Or(checkClients(o.Clients), checkCapacity(o.Capacity), checkTime("--down", o.Down)); err != nil {
		return Trial{}, fmt.Errorf("simulate an outage: %w", err)
	}
	g := newClientGroup(s.Policy, o.Clients, o.Seed)
	tokens := tokenBucket{time: o.Down - time.Second, perToken: time.Second / time.Duration(o.Capacity)}
	for now, ok := g.next(); ok; now, ok = g.next() {
		switch {
		case now.at < o.Down:
			g.fail(now.at)
		case tokens.take(now.at):
			g.serve(now.at)
		default:
			g.refuse(now.at)
		}
	}
	return g.trial(s, 0), nil
}

// tokenBucket is kept as the time up to which tokens are used. Each call moves it by one token; it is at most one
// second behind.
type tokenBucket struct {
	time, perToken time.Duration
}

func (b *tokenBucket) take(now time.Duration) bool {
	next := max(b.time, now-time.Second) + b.perToken
	if next > now {
		return false
	}
	b.time = next
	return true
}

func checkClients(n int) error {
	if n < 1 || n > MaxClients {
		return fmt.Errorf("%d clients\nhint: --clients is from 1 to %d", n, MaxClients)
	}
	return nil
}

func checkCapacity(n int) error {
	if n < 1 || n > int(time.Second) {
		return fmt.Errorf("a capacity of %d calls a second\nhint: --capacity is 1 or more", n)
	}
	return nil
}

func checkTime(flag string, d time.Duration) error {
	if d < 0 || d > maxSimulated/2 {
		return fmt.Errorf("%s %s is too long\nhint: a simulation ends after %s",
			flag, text.FormatDuration(d), text.FormatDuration(maxSimulated))
	}
	return nil
}
