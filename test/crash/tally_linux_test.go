package crash

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A process gets steps that its role did not get yet, none that its role never reaches, and at the end those at which
// none died.
func TestCandidates(t *testing.T) {
	const role = "some"
	at := func(step string) roleAtStep { return roleAtStep{role, step} }
	tests := map[string]struct {
		tried  map[roleAtStep]tries
		deaths map[string]int
		goal   int
		want   []string
	}{
		"the first": {goal: 1, want: []string{"a", "b", "c"}},
		"new ones":  {tried: map[roleAtStep]tries{at("a"): {1, 1}}, goal: 1, want: []string{"b", "c"}},
		"in vain so far": {
			tried: map[roleAtStep]tries{at("a"): {8, 0}, at("b"): {1, 1}, at("c"): {1, 0}}, goal: 1,
			want: []string{"a", "b", "c"},
		},
		"in vain": {
			tried: map[roleAtStep]tries{at("a"): {9, 0}, at("b"): {9, 1}, at("c"): {1, 0}}, goal: 1,
			want: []string{"b", "c"},
		},
		"nowhere": {
			tried: map[roleAtStep]tries{at("a"): {9, 0}, at("b"): {9, 0}, at("c"): {9, 0}}, goal: 1,
		},
		"not reached by chance": {deaths: map[string]int{"a": 3, "c": 1}, goal: 4, want: []string{"b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally([]string{"a", "b", "c"}, test.goal)
			tally.tried, tally.deaths = test.tried, test.deaths
			if got := tally.candidates(role); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			step, _ := tally.choose(rand.New(rand.NewPCG(1, 2)), role, false)
			if step != "" && !slices.Contains(test.want, step) {
				t.Errorf("got %q, want one of %q", step, test.want)
			}
		})
	}
}

// tally counts the deaths of a run. It is safe for concurrent use.
type tally struct {
	mutex     sync.Mutex
	steps     []string
	goal      int                  // of kills
	deaths    map[string]int       // at each step
	tried     map[roleAtStep]tries // how often one was sent to die there, and did
	byRole    map[string]int
	byChance  int
	processes int
	rounds    int
	tasks     int
	attempts  int
	children  int
	lostIn    int // tasks whose stdin was not kept when their owner died
	left      int // files of stdin that outlived their task
	started   time.Time
}

type roleAtStep struct{ role, step string }

type tries struct{ tries, deaths int }

func newTally(steps []string, goal int) *tally {
	return &tally{steps: steps, goal: goal, deaths: map[string]int{}, byRole: map[string]int{}, tried: map[roleAtStep]tries{},
		started: time.Now()}
}

// choose returns a step for a process to die at, and how often to pass it before, preferably a step with few deaths;
// with a new journal the one with the fewest. It returns "" for a role without steps.
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

// candidates returns the steps that a role may pass: first those that it did not get yet, and, after enough kills,
// those that no process has died at.
func (t *tally) candidates(role string) []string {
	if unreached := t.unreached(); len(unreached) > 0 && t.sum() >= t.goal {
		return unreached
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

// count counts how a process ended.
func (t *tally) count(a process, e result) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.processes++
	key := roleAtStep{a.role, a.kill.step}
	l := t.tried[key]
	l.tries++
	if e.killed {
		l.deaths++
		t.byRole[a.role]++
		if a.kill.step != "" {
			t.deaths[a.kill.step]++
		} else {
			t.byChance++
		}
	}
	t.tried[key] = l
}

// kills returns how many processes were killed so far.
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

// done reports whether enough processes were killed, at every step or after the limit of extra rounds.
func (t *tally) done(extra int) bool {
	return t.kills() >= t.goal && (len(t.unreached()) == 0 || extra >= extraRounds)
}

// extraRounds limits the rounds after the wanted number of kills, for steps that no process has died at.
const extraRounds = 10

// unreached returns the steps that no process has died at.
func (t *tally) unreached() []string {
	return slices.DeleteFunc(slices.Clone(t.steps), func(step string) bool { return t.deaths[step] > 0 })
}

func (t *tally) String() string {
	var s strings.Builder
	atSteps := t.kills() - t.byChance
	fmt.Fprintf(&s, "%d kills, %d of them at random moments and %d at steps of the journal:\n", atSteps+t.byChance,
		t.byChance, atSteps)
	for _, step := range t.steps {
		fmt.Fprintf(&s, "  %6d %s\n", t.deaths[step], step)
	}
	fmt.Fprintf(&s, "%d of them servers, %d workers, %d adders\n", t.byRole[roleServer], t.byRole[roleWorker],
		t.byRole[roleAdder])
	fmt.Fprintf(&s, "%d processes of retry in %d rounds; %d tasks, %d attempts, %d children started; %.0f s\n",
		t.processes, t.rounds, t.tasks, t.attempts, t.children, time.Since(t.started).Seconds())
	fmt.Fprintf(&s, "%d tasks cancelled because their owner died before it had all of their stdin; %d files of stdin outlived their task", t.lostIn, t.left)
	return s.String()
}
