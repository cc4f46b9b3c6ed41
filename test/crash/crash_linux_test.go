package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

var (
	killsFlag = flag.Int("kills", 0, "how many `processes` to kill; 0 is 320")
	seedFlag  = flag.Uint64("seed", 0, "the seed of the choices; 0 is a random one. When what happens is up to the system")
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(child(dir, os.Args[1:]))
	}
	os.Exit(m.Run())
}

const (
	usualKills  = 320
	killsARound = 40
	// killsAnExtra is how many there are in a round that is for steps that nobody has died at.
	killsAnExtra = 10
	// longestUse is how many rounds in a row are on one journal.
	longestUse = 3
)

func kills() int {
	if *killsFlag > 0 {
		return *killsFlag
	}
	return usualKills
}

// Whoever is killed wherever: no task is lost, none runs twice at once, and every one ends.
func TestKills(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "retry-crash-") //nolint:usetesting // what failed is kept
	testkit.Must(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	tally := newTally(everydaySteps(t), kills())
	play(t, dir, seed, tally)
	t.Log(tally)
	if spared := tally.spared(); len(spared) > 0 && !t.Failed() {
		t.Errorf("nobody died at %q; an actor has to pass there", spared)
	}
}

// everydaySteps returns the steps that actors pass on a sound journal. The other has a test of its own.
func everydaySteps(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(sourceSteps(t), func(step string) bool { return step == settingAside })
}

// play has rounds until enough were killed, or one has failed.
func play(t *testing.T, dir string, seed uint64, tally *tally) {
	t.Helper()
	binary := build(t, dir)
	source := rand.New(rand.NewPCG(seed, 0))
	var s *scene
	for round, uses, extra := uint64(0), 0, 0; !tally.done(extra) && !t.Failed(); round++ {
		quota := min(killsARound, tally.goal-tally.kills())
		if quota <= 0 {
			quota, uses, extra = killsAnExtra, 0, extra+1
		}
		fresh := uses == 0
		if fresh {
			uses = 1 + source.IntN(longestUse)
			s = newScene(binary, filepath.Join(dir, fmt.Sprint("round", round)), tally)
			testkit.Must(t, os.Mkdir(s.dir, 0o700))
		}
		uses--
		err := s.round(quota, fresh, func(nth int) (*cast, error) {
			return newCast(binary, tally, seed, round*atOnce+uint64(nth))
		})
		if err != nil {
			s.problem("%v", err)
		}
		if len(s.problems) > 0 {
			t.Errorf("round %d of -seed %d, see %s\n%s", round, seed, s.dir, strings.Join(s.problems, "\n"))
		} else if uses == 0 {
			testkit.Must(t, os.RemoveAll(s.dir))
		}
	}
}

// build builds retry with the steps to die at.
func build(t *testing.T, dir string) (binary string) {
	t.Helper()
	testkit.Slow(t, "it builds the program and kills hundreds of processes")
	binary = filepath.Join(dir, "retry")
	cmd := exec.Command("bash", filepath.Join("..", "..", ".ci", "release"), binary, "crashpoints") // what people run, but that it can be made to die
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build retry: %v\n%s", err, said)
	}
	return binary
}
