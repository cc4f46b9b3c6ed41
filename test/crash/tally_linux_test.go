package crash

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts the deaths of a run. It is safe for concurrent use.
type tally struct {
	mutex    sync.Mutex
	steps    []string
	goal     int                 // of kills
	deaths   map[string]int      // at each step
	tried    map[roleAtStep]luck // how often one was sent to die there, and did
	byChance int
	actors   int
	rounds   int
	tasks    int
	attempts int
	children int
	lostIn   int // tasks whose stdin was not kept when their owner died
	left     int // files of stdin that outlived their task
	started  time.Time
}

type roleAtStep struct{ role, step string }

type luck struct{ tries, deaths int }

func newTally(steps []string, goal int) *tally {
	return &tally{steps: steps, goal: goal, deaths: map[string]int{}, tried: map[roleAtStep]luck{}, started: time.Now()}
}

// choose returns a step for an actor to die at, rather one that few have died at, and how often to live through it before. On a
// fresh journal that is the one with the fewest. It returns "" for a role that passes none.
func (t *tally) choose(r *rand.Rand, role string, fresh bool) (step string, times int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	candidates := t.candidates(role)
	if len(candidates) == 0 {
		return "", 0
	}
	r.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	if len(candidates) > 2 && !fresh {
		candidates = candidates[:2]
	}
	step = slices.MinFunc(candidates, func(a, b string) int { return cmp.Compare(t.deaths[a], t.deaths[b]) })
	if t.tried[roleAtStep{role, step}].deaths > 0 && !fresh {
		for times < 9 && r.IntN(2) == 0 {
			times++
		}
	}
	return step, times
}

// candidates returns the steps that a role may pass: those that it was not sent to yet before the others, and, when there were
// enough kills, those that nobody has died at.
func (t *tally) candidates(role string) []string {
	if spared := t.spared(); len(spared) > 0 && t.sum() >= t.goal {
		return spared
	}
	var fresh, open []string
	for _, step := range t.steps {
		switch l := t.tried[roleAtStep{role, step}]; {
		case l.tries == 0:
			fresh = append(fresh, step)
		case l.tries <= 8 || l.deaths > 0: // else the role never gets there
			open = append(open, step)
		}
	}
	if len(fresh) > 0 {
		return fresh
	}
	return open
}

// count notes how an actor ended.
func (t *tally) count(a actor, e end) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.actors++
	key := roleAtStep{a.role, a.fate.step}
	l := t.tried[key]
	l.tries++
	if e.killed {
		l.deaths++
		if a.fate.step != "" {
			t.deaths[a.fate.step]++
		} else {
			t.byChance++
		}
	}
	t.tried[key] = l
}

// kills returns how many actors were killed so far.
func (t *tally) kills() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.sum()
}

func (t *tally) sum() int {
	n := t.byChance
	for _, deaths := range t.deaths {
		n += deaths
	}
	return n
}

// done reports whether enough were killed, everywhere or as good as that: extra rounds are bounded.
func (t *tally) done(extra int) bool {
	return t.kills() >= t.goal && (len(t.spared()) == 0 || extra >= extraRounds)
}

// extraRounds bounds the rounds after the last kill that was asked for, for steps that nobody has died at.
const extraRounds = 10

// spared returns the steps that nobody has died at.
func (t *tally) spared() []string {
	return slices.DeleteFunc(slices.Clone(t.steps), func(step string) bool { return t.deaths[step] > 0 })
}

func (t *tally) String() string {
	var s strings.Builder
	atSteps := t.kills() - t.byChance
	fmt.Fprintf(&s, "%d kills, %d of them at random moments and %d at steps of the journal:\n", atSteps+t.byChance, t.byChance, atSteps)
	for _, step := range t.steps {
		fmt.Fprintf(&s, "  %6d %s\n", t.deaths[step], step)
	}
	fmt.Fprintf(&s, "%d processes of retry in %d rounds; %d tasks, %d attempts, %d children started; %.0f s\n",
		t.actors, t.rounds, t.tasks, t.attempts, t.children, time.Since(t.started).Seconds())
	fmt.Fprintf(&s, "%d tasks cancelled because their owner died before it had all of their stdin; %d files of stdin outlived their task", t.lostIn, t.left)
	return s.String()
}
