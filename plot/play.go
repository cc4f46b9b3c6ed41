package plot

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// The most that is played through.
const (
	MaxTasks    = 10_000_000
	MaxAttempts = 1000
	maxRetries  = 1_000_000_000 // of all tasks together
)

// shards are a number of its own, not that of processors: sums that are joined in another order differ in their last digit.
const shards = 64

// NewStudy plays the tasks of a subject through. The same options give the same study on any number of processors.
func NewStudy(s Subject, o Options) (Study, error) {
	retries := o.Retries
	if s.Policy.Attempts > 0 {
		retries = s.Policy.Attempts - 1
	}
	if err := checkSize(o.Tasks, retries); err != nil {
		return Study{}, fmt.Errorf("plot %s: %w", s.Label, err)
	}
	g := newGame(plain(s.Policy), retries, o)
	g.play()
	return g.study(s), nil
}

func checkSize(tasks, retries int) error {
	switch {
	case tasks < 1 || tasks > MaxTasks:
		return fmt.Errorf("%d tasks\nhint: from 1 to %d can be played through", tasks, MaxTasks)
	case retries < 1:
		return errors.New("one attempt has no retry to show\nhint: give --attempts 2 or more")
	case retries > MaxAttempts-1:
		return fmt.Errorf("%d attempts\nhint: give --attempts, at most %d", retries+1, MaxAttempts)
	case tasks*retries > maxRetries:
		return fmt.Errorf("%d tasks of %d retries take too long\nhint: fewer --tasks or --attempts; together at most %d retries", tasks, retries, maxRetries)
	}
	return nil
}

// plain is a policy that retries every failure by its own curve: which outcomes there would be nobody knows.
func plain(p task.Policy) task.Policy {
	p.RetryOn, p.StopOn, p.SuccessOn, p.Rules = nil, nil, nil, nil
	return p
}

// game is the playing of a study.
type game struct {
	policy  task.Policy
	options Options
	retries int
	drawn   int
	players []*player
	sums    [shards]*sums
	dots    [shards][]Dot
}

func newGame(p task.Policy, retries int, o Options) *game {
	g := &game{policy: p, options: o, retries: retries, drawn: min(o.Tasks, MaxDrawn)}
	for range min(runtime.GOMAXPROCS(0), shards) {
		g.players = append(g.players, newPlayer(p, retries, o.Seed))
	}
	return g
}

func (g *game) play() {
	var next atomic.Int64
	var workers sync.WaitGroup
	for _, p := range g.players {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < shards; i = int(next.Add(1)) - 1 {
				g.playShard(p, i)
			}
		})
	}
	workers.Wait()
}

func (g *game) playShard(p *player, i int) {
	from, to := i*g.options.Tasks/shards, (i+1)*g.options.Tasks/shards
	g.sums[i] = newSums(g.retries)
	drawn := max(min(to, g.drawn)-from, 0)
	g.dots[i] = p.play(from, from+drawn, g.sums[i], make([]Dot, 0, drawn*g.retries))
	p.play(from+drawn, to, g.sums[i], nil)
}

// study joins what was played.
func (g *game) study(s Subject) Study {
	all, total := g.players[0], newSums(g.retries)
	for _, p := range g.players[1:] {
		all.join(p)
	}
	study := Study{Subject: s, Tasks: g.options.Tasks, Drawn: g.drawn}
	for i := range shards {
		total.join(g.sums[i])
		study.Dots = append(study.Dots, g.dots[i]...)
	}
	study.Window = Window{Least: total.least, Mean: inTime(total.window.mean), Most: total.most}
	median := min(max(all.ends.median(), total.least), total.most) // a bin is wider than a time that all tasks have in common
	study.Load = all.seconds.load(median)
	study.Load.Local = all.spread.local(median)
	study.Load.spread = all.spread
	study.Retries = g.rows(total)
	return study
}

// rows are the retries that a task came to; a budget may have left the others out.
func (g *game) rows(total *sums) (rows []Retry) {
	for i, w := range total.waits {
		if w.count == 0 {
			break
		}
		spec := g.policy.Backoff
		r := Retry{N: i + 1, Base: spec.Base(i + 1), Tasks: w.count, Mean: inTime(w.mean), CV: w.cv()}
		r.Least, r.Most = spec.Bounds(i + 1)
		r.Unbounded = r.Most >= backoff.Max
		rows = append(rows, r)
	}
	return rows
}

func inTime(seconds float64) time.Duration {
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
