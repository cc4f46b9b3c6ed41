package worker

import (
	"time"

	"github.com/10f93571/retry/state"
)

// lane has the tasks of one partition to one host that are due.
type lane struct {
	key     state.Lane
	host    *host
	ring    *ring
	items   []state.Item
	full    bool           // the store has more of it
	missing state.Position // of a full lane: the first task that only the store has; zero while that is read
	listed  [classes]bool  // it has a turn
	asks    bool           // it is among the hungry ones
}

// ring is a partition. Its lanes with tasks take turns, by the class of their hosts.
type ring struct {
	turns   [classes][]*lane
	taken   int
	listed  bool         // it has a turn itself
	running int          // attempts
	trials  [classes]int // of them, by the class that the host had when it was taken
}

// The classes of hosts. Those that may be dead hold their slots for long, and so share a part of the slots; a host that
// was never asked need not wait for those that are known to be silent.
const (
	answering = iota
	untried
	mute // did not reply to the latest attempt
	classes
)

// order is which classes come first: every so often one that may be dead, so that it does not wait for the end of what
// goes to the others.
func (r *ring) order() [classes]int {
	switch r.taken % 8 {
	case 3:
		return [classes]int{untried, answering, mute}
	case 7:
		return [classes]int{mute, answering, untried}
	}
	return [classes]int{answering, untried, mute}
}

// host bounds what goes to one host.
type host struct {
	state.TargetSettings
	lanes   []*lane
	running int
	probes  int       // of them begun while it was mute
	next    time.Time // when the rate allows another attempt
	class   int
}

// probesMost is how many attempts at once find out whether a mute host answers again. There are two, so that a path of
// the host that hangs does not hide one that answers.
const probesMost = 2

// free reports whether another attempt may go to the host, and, where only the rate forbids it, from when on.
func (h *host) free(perHost int, now time.Time) (ok bool, from time.Time) {
	most := perHost
	switch {
	case h.MaxConcurrent > 0 && h.Host == "": // commands have a bound of their own
		most = h.MaxConcurrent
	case h.MaxConcurrent > 0:
		most = min(most, h.MaxConcurrent)
	}
	switch {
	case h.Paused, h.running >= most, h.class == mute && h.probes >= probesMost:
		return false, time.Time{}
	case h.RatePerSecond > 0 && h.next.After(now):
		return false, h.next
	}
	return true, time.Time{}
}

// begin counts an attempt.
func (h *host) begin(now time.Time) {
	h.running++
	if h.class == mute {
		h.probes++
	}
	if h.RatePerSecond > 0 {
		if h.next.Before(now) {
			h.next = now
		}
		h.next = h.next.Add(time.Duration(float64(time.Second) / h.RatePerSecond))
	}
}

func (s *schedule) host(name string) *host {
	h := s.hosts[name]
	if h == nil {
		h = &host{TargetSettings: state.TargetSettings{Host: name}, class: untried}
		if name == "" {
			h.class = answering // this machine, for commands
		}
		s.hosts[name] = h
	}
	return h
}

func (s *schedule) ring(partition string) *ring {
	r := s.rings[partition]
	if r == nil {
		r = &ring{}
		s.rings[partition] = r
	}
	return r
}

// list gives a lane a turn.
func (s *schedule) list(l *lane) {
	if class := l.host.class; !l.listed[class] {
		l.listed[class] = true
		l.ring.turns[class] = append(l.ring.turns[class], l)
	}
	if !l.ring.listed {
		s.recount(l.ring, func() { l.ring.listed = true })
		s.turns = append(s.turns, l.ring)
	}
}

// take returns the next task to claim, and counts it as one that runs: partitions take turns, and so do the hosts of a
// partition. A partition that has its share of the slots waits for those that have less, unless they have nothing that
// may run. class is what done needs. Where there is no task but the rate of a host will allow one, take returns from
// when on.
func (s *schedule) take(now time.Time) (item state.Item, class int, ok bool, from time.Time) {
	for _, beyond := range []bool{false, true} {
		for range len(s.turns) {
			r := s.turns[0]
			s.turns = s.turns[1:]
			if s.hasShare(r) == beyond {
				item, class, ok = s.takeTurn(r, now, &from)
			}
			if waits := len(r.turns[answering])+len(r.turns[untried])+len(r.turns[mute]) > 0; waits {
				s.turns = append(s.turns, r)
			} else {
				s.recount(r, func() { r.listed = false })
			}
			if ok {
				s.ready--
				return item, class, true, from
			}
		}
	}
	return state.Item{}, 0, false, from
}

// hasShare reports whether a partition has its share of the slots. What is held by partitions for which nothing waits
// is not shared.
func (s *schedule) hasShare(r *ring) bool {
	return r.running > 0 && r.running >= (s.slots-s.settled)/s.sharers
}

// recount changes what a partition holds, or whether anything waits for it.
func (s *schedule) recount(r *ring, change func()) {
	s.count(r, -1)
	change()
	s.count(r, 1)
}

func (s *schedule) count(r *ring, sign int) {
	switch {
	case r.running > 0 && r.listed:
		s.sharers += sign
	case !r.listed:
		s.settled += sign * r.running
	}
}

// takeTurn takes a task of a partition.
func (s *schedule) takeTurn(r *ring, now time.Time, from *time.Time) (item state.Item, class int, ok bool) {
	for _, class = range r.order() {
		if s.mayTry(r, class) {
			item, ok = s.takeFrom(r, class, now, from)
		}
		if ok {
			s.recount(r, func() { r.running++ })
			r.trials[class]++
			s.trials[class]++
			r.taken++
			break
		}
	}
	return item, class, ok
}

// mayTry reports whether hosts of a class may hold another slot of a partition. Those that may be dead leave it a
// quarter of what the other partitions' leave, so that those of one do not hold up the untried hosts of all. Silent
// ones leave half of what is for both to those that were never asked.
func (s *schedule) mayTry(r *ring, class int) bool {
	if class == answering {
		return true
	}
	own := r.trials[untried] + r.trials[mute]
	rest := s.slots - (s.trials[untried] + s.trials[mute] - own)
	most := rest - rest/4
	return own < most && (class != mute || r.trials[mute] < max(1, most/2))
}

func (s *schedule) takeFrom(r *ring, class int, now time.Time, from *time.Time) (item state.Item, ok bool) {
	for range len(r.turns[class]) {
		l := r.turns[class][0]
		r.turns[class] = r.turns[class][1:]
		l.listed[class] = false
		if l.host.class != class { // it has a turn with the others since
			continue
		}
		free, later := l.host.free(s.perHost, now)
		if !later.IsZero() && (from.IsZero() || later.Before(*from)) {
			*from = later
		}
		if free && len(l.items) > 0 {
			item, ok = l.items[0], true
			l.items = l.items[1:]
			l.host.begin(now)
			s.ask(l)
		}
		if len(l.items) > 0 {
			l.listed[class] = true
			r.turns[class] = append(r.turns[class], l)
		}
		if ok {
			return item, true
		}
	}
	return state.Item{}, false
}

// done counts an attempt that has ended, or did not begin. class is the one that the host had when it was taken, and
// replied whether the host has answered, if it was asked.
func (s *schedule) done(key state.Lane, class int, asked, replied bool) {
	h, r := s.host(key.Host), s.ring(key.Partition)
	h.running--
	if class == mute {
		h.probes--
	}
	r.trials[class]--
	s.trials[class]--
	s.recount(r, func() { r.running-- })
	now := mute
	if replied || key.Host == "" {
		now = answering
	}
	if !asked || h.class == now {
		return
	}
	h.class = now
	for _, l := range h.lanes {
		if len(l.items) > 0 {
			s.list(l)
		}
		s.ask(l)
	}
}
