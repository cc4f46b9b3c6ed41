package worker

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/10f93571/retry/state"
)

const (
	horizon   = 10 * time.Minute // how far ahead tasks are loaded
	windowMax = 100_000          // tasks in memory that loading stops at; twice as many are the most
	laneMax   = 1000             // of them ready in one lane: the others stay in the store
	pageMax   = 2000             // tasks read at once
	hostsKept = 10_000           // hosts without tasks of which it is remembered whether they reply
)

// schedule knows which tasks are due. It holds those that are due soon; the store has the others. It is not safe for
// concurrent use.
type schedule struct {
	future  dueHeap // not due yet
	lanes   map[state.Lane]*lane
	hungry  []*lane // full ones that are nearly empty now
	hosts   map[string]*host
	rings   map[string]*ring // partitions with tasks that are ready, or with attempts
	turns   []*ring          // they take turns
	ready   int              // tasks in all lanes
	loaded  state.Position   // what is due until here is in memory, but for what a full lane leaves out
	partial bool             // there is more until the horizon
	sizeMax int              // tasks in memory, at which shed is called
	perHost int
	slots   int          // attempts at once
	sharers int          // partitions with attempts for which more waits
	settled int          // attempts of the others
	trials  [classes]int // attempts that run to hosts of each class
}

// newSchedule bounds the attempts to one host, and has the slots shared.
func newSchedule(perHost, slots int) *schedule {
	return &schedule{
		lanes: map[state.Lane]*lane{}, hosts: map[string]*host{}, rings: map[string]*ring{}, sizeMax: 2 * windowMax,
		perHost: perHost, slots: slots,
	}
}

// push takes a task that waits.
func (s *schedule) push(i state.Item, now time.Time) {
	if i.Due.After(now) {
		heap.Push(&s.future, i)
	} else {
		s.enqueue(i)
	}
	if s.size() >= s.sizeMax {
		s.shed()
		s.sizeMax = max(2*windowMax, 2*s.size())
	}
}

// enqueue puts a task that is due into its lane. A full lane leaves it to the store.
func (s *schedule) enqueue(i state.Item) {
	l := s.lanes[i.Lane]
	if l == nil {
		l = s.newLane(i.Lane)
	}
	if l.full || len(l.items) >= laneMax {
		s.leave(l, i.Position)
		return
	}
	s.add(l, i)
}

func (s *schedule) add(l *lane, i state.Item) {
	l.items = append(l.items, i)
	s.ready++
	s.list(l)
}

// leave leaves a task to the store, and those of its lane that come after it.
func (s *schedule) leave(l *lane, p state.Position) {
	if !l.full || l.missing.Due.IsZero() || p.Before(l.missing) {
		l.missing = p
	}
	l.full = true
	s.ask(l)
}

func (s *schedule) newLane(key state.Lane) *lane {
	l := &lane{key: key, host: s.host(key.Host), ring: s.ring(key.Partition)}
	l.host.lanes = append(l.host.lanes, l)
	s.lanes[key] = l
	return l
}

// advance moves what has become due into the lanes.
func (s *schedule) advance(now time.Time) {
	for len(s.future) > 0 && !s.future[0].Due.After(now) {
		s.enqueue(heap.Pop(&s.future).(state.Item))
	}
}

// wants reports whether a lane should get more from the store: one that is worked off soon early enough, another only
// when it is empty.
func (s *schedule) wants(l *lane) bool {
	switch {
	case !l.full, l.missing.Due.IsZero(), l.host.Paused:
		return false
	case l.host.class == answering && s.ready < windowMax:
		return len(l.items) < laneMax/4
	}
	return len(l.items) == 0
}

// ration is how much is read for a lane.
func (s *schedule) ration(l *lane) int {
	if l.host.class == answering {
		return laneMax
	}
	return 2 * s.perHost
}

func (s *schedule) ask(l *lane) {
	if !l.asks && s.wants(l) {
		l.asks = true
		s.hungry = append(s.hungry, l)
	}
}

// nextHungry returns a full lane that is nearly empty, and after which position the store has more of it. feed follows.
func (s *schedule) nextHungry() (l *lane, after state.Position, ok bool) {
	for len(s.hungry) > 0 {
		l = s.hungry[0]
		s.hungry = s.hungry[1:]
		l.asks = false
		if s.lanes[l.key] == l && s.wants(l) {
			after = before(l.missing)
			l.missing = state.Position{}
			return l, after, true
		}
	}
	return nil, after, false
}

// before is the last position before another one.
func before(p state.Position) state.Position {
	p.Number--
	return p
}

// feed gives a full lane what the store has more of it. What came during the read was left to the store too.
func (s *schedule) feed(l *lane, items []state.Item, whole bool) {
	l.full = !l.missing.Due.IsZero()
	if !whole && len(items) > 0 {
		p := items[len(items)-1].Position
		p.Number++
		s.leave(l, p)
	}
	for _, i := range items {
		if len(l.items) < laneMax {
			s.add(l, i)
		} else {
			s.leave(l, i.Position)
		}
	}
}

// shed makes room: of what is not due yet the first half of the window stays, and of each lane a fair share.
func (s *schedule) shed() {
	if len(s.future) > windowMax/2 {
		slices.SortFunc(s.future, func(a, b state.Item) int { return a.Compare(b.Position) }) // which is a heap as well
		if first := before(s.future[windowMax/2].Position); first.Before(s.loaded) {
			s.loaded, s.partial = first, true
		}
		s.future = slices.Clone(s.future[:windowMax/2])
	}
	s.shorten()
}

// crowded reports whether memory is full of tasks that may not run, and the store has others that are due.
func (s *schedule) crowded(now time.Time) bool {
	return s.partial && s.ready > windowMax/4 && s.loaded.Due.Before(now)
}

// shorten leaves to the store what is beyond each lane's share of a quarter of the window.
func (s *schedule) shorten() {
	if s.ready <= windowMax/4 {
		return
	}
	share := max(1, windowMax/4/len(s.lanes))
	for _, l := range s.lanes {
		if len(l.items) <= share {
			continue
		}
		for _, i := range l.items[share:] {
			s.leave(l, i.Position)
		}
		s.ready -= len(l.items) - share
		l.items = slices.Clone(l.items[:share])
	}
}

// forget drops every task, to load them again. What runs is still counted.
func (s *schedule) forget() {
	maps.DeleteFunc(s.rings, func(_ string, r *ring) bool { return r.running == 0 })
	for _, r := range s.rings {
		s.recount(r, func() { r.turns, r.listed = [classes][]*lane{}, false })
	}
	*s = schedule{
		lanes: map[state.Lane]*lane{}, hosts: s.hosts, rings: s.rings, sizeMax: 2 * windowMax,
		perHost: s.perHost, slots: s.slots, sharers: s.sharers, settled: s.settled, trials: s.trials,
	}
	for _, h := range s.hosts {
		h.lanes = nil
	}
}

// set changes what bounds the hosts.
func (s *schedule) set(list []state.TargetSettings) {
	for _, h := range s.hosts {
		h.TargetSettings = state.TargetSettings{Host: h.Host}
	}
	for _, t := range list {
		s.host(t.Host).TargetSettings = t
	}
	for _, l := range s.lanes {
		s.ask(l)
	}
}

// tidy drops what has no tasks any more: a service may see many hosts and partitions in its life. Whether a host replies
// is remembered for some.
func (s *schedule) tidy() {
	used := map[string]bool{}
	for key, l := range s.lanes {
		if len(l.items) == 0 && !l.full {
			delete(s.lanes, key)
			l.host.lanes = slices.DeleteFunc(l.host.lanes, func(other *lane) bool { return other == l })
		} else {
			used[key.Partition] = true
		}
	}
	maps.DeleteFunc(s.rings, func(partition string, r *ring) bool {
		return !used[partition] && !r.listed && r.running == 0
	})
	for name, h := range s.hosts {
		most := hostsKept
		if h.class == answering { // what its tasks would lose is more
			most = 10 * hostsKept
		}
		if len(s.hosts) > most && h.running == 0 && len(h.lanes) == 0 &&
			h.TargetSettings == (state.TargetSettings{Host: name}) {
			delete(s.hosts, name)
		}
	}
}

// size is how many tasks are in memory.
func (s *schedule) size() int { return s.ready + len(s.future) }

// dueHeap is a heap of tasks by the time of their next attempt.
type dueHeap []state.Item

// Len implements heap.Interface.
func (h dueHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h dueHeap) Less(i, k int) bool { return h[i].Before(h[k].Position) }

// Swap implements heap.Interface.
func (h dueHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(item any) { *h = append(*h, item.(state.Item)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	*h = (*h)[:last]
	return item
}
