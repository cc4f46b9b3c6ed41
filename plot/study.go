package plot

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// shards is constant, not the number of processors: a sum of floats depends on the order of its parts in the last
// digit.
const shards = 64

// simulate runs the tasks of a study on all processors; a worker takes one shard of the tasks after the other. It
// returns the counts and the sums of all tasks.
func simulate(p task.Policy, retries int, o Options) (*worker, *sums) {
	workers := make([]*worker, min(runtime.GOMAXPROCS(0), shards))
	var parts [shards]*sums
	var next atomic.Int64
	var running sync.WaitGroup
	for n := range workers {
		w := newWorker(p, retries, o.Seed)
		workers[n] = w
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < shards; i = int(next.Add(1)) - 1 {
				parts[i] = newSums(retries)
				w.simulate(i*o.Tasks/shards, (i+1)*o.Tasks/shards, parts[i])
			}
		})
	}
	running.Wait()
	all, total := workers[0], newSums(retries)
	for _, w := range workers[1:] {
		all.seconds.merge(w.seconds)
		all.seconds.fit(maxBins)
		all.times.merge(w.times)
		all.ends.merge(w.ends)
	}
	for _, part := range parts {
		total.merge(part)
	}
	return all, total
}

// summary describes each retry that at least one task reached; a budget may end all tasks earlier.
func (s *sums) summary(spec backoff.Spec) (retries []Retry) {
	for i, delays := range s.delays {
		if delays.count == 0 {
			break
		}
		r := Retry{N: i + 1, Base: spec.Base(i + 1), Tasks: delays.count, Mean: fromSeconds(delays.mean), CV: delays.cv()}
		r.Least, r.Most = spec.Bounds(i + 1)
		r.Unbounded = r.Most >= backoff.Max
		retries = append(retries, r)
	}
	return retries
}

func fromSeconds(seconds float64) time.Duration {
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// failure is the outcome of every simulated attempt. It takes no time, since only the delays matter.
var failure = task.Outcome{Exit: 1}

// startedAt is when every simulated task starts; the value does not matter.
var startedAt = time.Unix(0, 0)

// worker simulates tasks one after the other, and keeps counts only.
type worker struct {
	policy  task.Policy
	retries int // per task
	random  *randomSource
	seconds *secondCounts
	times   *histogram // of all retries
	ends    *histogram // of each task's last retry
}

func newWorker(p task.Policy, retries int, seed uint64) *worker {
	base := firstDelay(p)
	return &worker{
		policy: p, retries: retries, random: newRandomSource(seed),
		seconds: &secondCounts{step: time.Second, counts: map[int64]uint32{}},
		times:   newHistogram(base), ends: newHistogram(base),
	}
}

// firstDelay is where the octaves of the histograms begin: the first base delay that is not 0.
func firstDelay(p task.Policy) time.Duration {
	for n := 1; n <= 100; n++ {
		if d := p.Backoff.Base(n); d > 0 {
			return d
		}
	}
	return time.Second
}

// sums are kept per shard and merged in the order of the shards, so that every run rounds alike.
type sums struct {
	delays      []moments // in seconds, by retry
	window      moments
	least, most time.Duration // of the window
	dots        []Dot
}

func newSums(retries int) *sums {
	return &sums{delays: make([]moments, retries), least: math.MaxInt64}
}

func (s *sums) merge(o *sums) {
	for i := range s.delays {
		s.delays[i].merge(o.delays[i])
	}
	s.window.merge(o.window)
	s.least, s.most = min(s.least, o.least), max(s.most, o.most)
	s.dots = append(s.dots, o.dots...)
}

// simulate runs the tasks with the indices from, from+1 … to-1.
func (w *worker) simulate(from, to int, s *sums) {
	for index := from; index < to; index++ {
		w.random.seedFor(uint64(index), 0)
		h := task.History{Began: startedAt, Phase: w.random.phase(uint64(index))}
		var at time.Duration
		for n := range w.retries {
			d := task.Decide(&w.policy, h, failure, startedAt.Add(at), w.random.next)
			if d.Verdict != task.VerdictRetry {
				break
			}
			h = h.After(&w.policy, failure, d)
			at = addSaturating(at, d.Delay)
			s.delays[n].add(d.Delay.Seconds())
			w.seconds.add(at)
			w.times.add(at)
			if index < MaxDrawn {
				s.dots = append(s.dots, Dot{Task: index, Retry: n + 1, At: at})
			}
		}
		w.ends.add(at)
		s.window.add(at.Seconds())
		s.least, s.most = min(s.least, at), max(s.most, at)
		w.seconds.fit(maxBins)
	}
}

// addSaturating never overflows: a thousand delays of a year do not fit into a duration.
func addSaturating(at, delay time.Duration) time.Duration {
	return at + min(delay, math.MaxInt64-at)
}

// randomSource gives the random numbers of one task after the other. They depend on the seed and the task's index
// alone.
type randomSource struct {
	seed   uint64
	source *rand.PCG
	next   func() float64 // uniform in [0, 1)
}

func newRandomSource(seed uint64) *randomSource {
	source := rand.NewPCG(seed, 0)
	return &randomSource{seed: seed, source: source, next: rand.New(source).Float64}
}

// seedFor starts the random numbers of a task's n-th draw. Neither the order of tasks nor earlier draws change them.
func (r *randomSource) seedFor(index, draw uint64) {
	r.source.Seed(mix(r.seed)^mix(index), mix(draw+1))
}

// phase is a task's fixed phase: the hash of the seed and its index.
func (r *randomSource) phase(index uint64) float64 {
	return float64(mix(mix(r.seed)+index)>>11) / (1 << 53)
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
