package plot

import (
	"cmp"
	"slices"
	"time"

	"github.com/10f93571/retry/task"
)

// Where a simulation ends though not all of its clients are done.
const (
	maxSimulated = 365 * day   // of the clients' time
	maxCalls     = 100_000_000 // of all clients together
	maxEach      = 100_000     // of a client, in the mean
	stillFor     = 100         // of each client while no time passes: it never will
)

// crowd are clients that call until they are served. Who is refused asks the policy how long to wait.
type crowd struct {
	policy  task.Policy
	dice    *dice
	clients []task.Progress // all that is kept of one between two calls
	queue   queue
	calls   int
	still   int             // calls since the time went on
	refused int             // calls that came to nothing though the service was there
	waves   []int           // the same, by how many retries came before
	ended   time.Duration   // the time of the latest call
	waits   []time.Duration // until each was served, in the order of serving
}

// newCrowd gathers clients that make their first call at time 0. None gives up: attempts and budget do not count.
func newCrowd(p task.Policy, clients int, seed uint64) *crowd {
	p = plain(p)
	p.Attempts, p.Budget = 0, 0
	c := &crowd{policy: p, dice: newDice(seed), clients: make([]task.Progress, clients), queue: make(queue, clients)}
	for i := range clients {
		c.queue[i].client = int32(i) // all at 0, by their numbers: that is a heap
	}
	c.waits = make([]time.Duration, 0, clients)
	c.waves = make([]int, 0, maxWaves)
	return c
}

// next is the earliest call; false where nobody is left or it will not be waited for.
func (c *crowd) next() (call, bool) {
	if len(c.queue) == 0 || c.queue[0].at > maxSimulated || c.tired() {
		return call{}, false
	}
	if c.calls++; c.queue[0].at > c.ended {
		c.ended, c.still = c.queue[0].at, 0
	}
	c.still++
	return c.queue[0], true
}

// tired reports whether there were more calls than anybody waits for.
func (c *crowd) tired() bool {
	return c.calls >= min(maxCalls, maxEach*len(c.clients)) || c.still > stillFor*len(c.clients)
}

// idle has each client call in vain until a time. What order the calls have does not matter yet, so no queue has to keep it.
func (c *crowd) idle(until time.Duration) {
	for i := range c.queue {
		q := &c.queue[i]
		for q.at < until && !c.tired() {
			at := q.at
			c.ended = max(c.ended, at)
			q.at, _ = c.again(q.client, at)
			if c.calls++; q.at > at {
				c.still = 0
			}
			c.still++
		}
	}
	slices.SortFunc(c.queue, func(a, b call) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client)) })
}

// serve ends the earliest call: its client has what it wants, after a wait.
func (c *crowd) serve(wait time.Duration) {
	c.queue.pop()
	c.waits = append(c.waits, wait)
}

// refuse sends the client of the earliest call away at a time. It returns how many retries it had behind it.
func (c *crowd) refuse(at time.Duration) (wave int) {
	who := c.queue[0].client
	next, wave := c.again(who, at)
	c.queue.replace(call{next, who})
	return wave
}

// again is when a client calls again that was sent away at a time, and how many retries it had behind it.
func (c *crowd) again(who int32, at time.Duration) (next time.Duration, wave int) {
	along := &c.clients[who]
	wave = along.Step
	c.dice.of(uint64(who), uint64(wave))
	h := task.History{Began: began, Phase: c.dice.phase(uint64(who)), Made: wave, Counted: wave, Own: *along}
	d := task.Decide(&c.policy, h, failure, began.Add(at), c.dice.next)
	*along = h.After(&c.policy, failure, d).Own
	return later(at, d.Delay), wave
}

// count counts a call that was refused after so many retries.
func (c *crowd) count(wave int) {
	c.refused++
	for len(c.waves) <= wave && wave < maxWaves {
		c.waves = append(c.waves, 0)
	}
	if wave < maxWaves {
		c.waves[wave]++
	}
}

// trial sums up; each client goes on for a time after it was served.
func (c *crowd) trial(s Subject, held time.Duration) Trial {
	t := Trial{
		Subject: s, Clients: len(c.clients), Calls: c.calls, Refused: c.refused, ByWave: c.waves,
		Wait: quantiles(c.waits, len(c.clients)), Left: len(c.queue), Ended: c.ended,
	}
	t.Done = t.Wait.plus(held)
	return t
}
