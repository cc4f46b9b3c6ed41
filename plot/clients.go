package plot

import (
	"container/heap"
	"time"

	"github.com/10f93571/retry/task"
)

// A simulation stops here although clients are left.
const (
	maxSimulated         = 365 * 24 * time.Hour // of simulated time
	maxCalls             = 100_000_000          // of all clients together
	maxCallsPerClient    = 100_000              // on average
	maxCallsWithoutDelay = 100                  // per client while the simulated time stands still
)

// clientGroup is a number of clients that call until they are served. A client that is refused waits as its policy
// says.
type clientGroup struct {
	policy       task.Policy
	random       *randomSource
	clients      []task.Progress // all that is kept of a client between two calls
	queue        callQueue
	calls        int
	withoutDelay int             // calls since the simulated time last advanced
	refused      int             // calls that the service refused while it was there
	waves        []int           // the same, by the number of retries before the call
	lastCall     time.Duration   // the time of the latest call
	waits        []time.Duration // until a client was served, in the order of serving
}

// newClientGroup returns clients that make their first call at time 0. None gives up: attempts and budget do not count.
func newClientGroup(p task.Policy, clients int, seed uint64) *clientGroup {
	p = withoutConditions(p)
	p.Attempts, p.Budget = 0, 0
	g := &clientGroup{
		policy: p, random: newRandomSource(seed), clients: make([]task.Progress, clients), queue: make(callQueue, clients),
		waits: make([]time.Duration, 0, clients), waves: make([]int, 0, maxWaves),
	}
	for i := range clients {
		g.queue[i].client = int32(i) // equal times in the order of clients are a valid heap
	}
	return g
}

// next is the earliest call. It is false where no client is left, or the simulation has to stop.
func (g *clientGroup) next() (call, bool) {
	if len(g.queue) == 0 || g.queue[0].at > maxSimulated || g.withoutDelay > maxCallsWithoutDelay*len(g.clients) ||
		g.calls >= min(maxCalls, maxCallsPerClient*len(g.clients)) {
		return call{}, false
	}
	if g.calls++; g.queue[0].at > g.lastCall {
		g.lastCall, g.withoutDelay = g.queue[0].at, 0
	}
	g.withoutDelay++
	return g.queue[0], true
}

// serve removes the client of the earliest call, which was served after a wait.
func (g *clientGroup) serve(wait time.Duration) {
	heap.Pop(&g.queue)
	g.waits = append(g.waits, wait)
}

// refuse refuses the earliest call at a time, and counts it among those with as many retries before them.
func (g *clientGroup) refuse(at time.Duration) {
	wave := g.fail(at)
	g.refused++
	for len(g.waves) <= wave && wave < maxWaves {
		g.waves = append(g.waves, 0)
	}
	if wave < maxWaves {
		g.waves[wave]++
	}
}

// fail lets the client of the earliest call, which fails at a time, call again later. It returns how many retries that
// client had made before.
func (g *clientGroup) fail(at time.Duration) (wave int) {
	next := &g.queue[0]
	client := uint64(next.client)
	progress := &g.clients[client]
	wave = progress.Step
	g.random.seedFor(client, uint64(wave))
	h := task.History{Began: startedAt, Phase: g.random.phase(client), Made: wave, Counted: wave, Own: *progress}
	d := task.Decide(&g.policy, h, failure, startedAt.Add(at), g.random.next)
	*progress = h.After(&g.policy, failure, d).Own
	next.at = addSaturating(at, d.Delay)
	heap.Fix(&g.queue, 0)
	return wave
}

// trial summarises the group; a client is done some time after it was served.
func (g *clientGroup) trial(s Subject, held time.Duration) Trial {
	return Trial{
		Subject: s, Clients: len(g.clients), Calls: g.calls, Refused: g.refused, ByWave: g.waves,
		Wait: newQuantiles(g.waits, len(g.clients), 0), Done: newQuantiles(g.waits, len(g.clients), held),
		Left: len(g.queue), Ended: g.lastCall,
	}
}

// call is when a client calls.
type call struct {
	at     time.Duration
	client int32
}

// callQueue is a heap with the earliest call first. Of two at the same time the lower client comes first, so that every
// run is the same.
type callQueue []call

func (q callQueue) Len() int { return len(q) }

func (q callQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].client < q[j].client
}

func (q callQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is never called: all clients are there from the beginning.
func (q *callQueue) Push(any) {}

// Pop removes the last call. It returns nothing, as nobody needs the call, and an interface would be an allocation.
func (q *callQueue) Pop() any {
	*q = (*q)[:len(*q)-1]
	return nil
}
