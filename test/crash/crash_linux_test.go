package crash

import (
	"bytes"
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
	seedFlag  = flag.Uint64("seed", 0,
		"the seed of the choices; 0 is a random one. When what happens is up to the system")
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
	// killsAnExtra is the number of kills in an extra round for steps that no process has died at.
	killsAnExtra = 10
	// longestUse is the number of rounds in a row with one journal.
	longestUse = 3
)

func kills() int {
	if *killsFlag > 0 {
		return *killsFlag
	}
	return usualKills
}

// Whichever process is killed at any step: no task is lost, none runs twice at the same time, and all of them end.
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
	runRounds(t, dir, seed, tally)
	t.Log(tally)
	if unreached := tally.unreached(); len(unreached) > 0 && !t.Failed() {
		t.Errorf("got no killed process at the steps %q, want one at each", unreached)
	}
}

// everydaySteps returns the steps that processes pass with an undamaged journal. The other step has a test of its own.
func everydaySteps(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(sourceSteps(t), func(step string) bool { return step == settingAside })
}

// runRounds runs rounds until enough processes were killed, or one round has failed.
func runRounds(t *testing.T, dir string, seed uint64, tally *tally) {
	t.Helper()
	binary := build(t, dir)
	source := rand.New(rand.NewPCG(seed, 0))
	var s *trial
	for round, uses, extra := uint64(0), 0, 0; !tally.done(extra) && !t.Failed(); round++ {
		quota := min(killsARound, tally.goal-tally.kills())
		if quota <= 0 {
			quota, uses, extra = killsAnExtra, 0, extra+1
		}
		fresh := uses == 0
		if fresh {
			uses = 1 + source.IntN(longestUse)
			if s != nil {
				s.close()
			}
			s = newTrial(binary, filepath.Join(dir, fmt.Sprint("round", round)), tally)
			t.Cleanup(s.close)
			testkit.Must(t, os.Mkdir(s.dir, 0o700))
		}
		uses--
		err := s.round(quota, fresh, func(nth int) (*generator, error) {
			g, err := newGenerator(binary, tally, seed, round*atOnce+uint64(nth))
			if err == nil {
				g.service = s.service
			}
			return g, err
		})
		if err != nil {
			s.fail("%v", err)
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

// settingAside is the step before each file of a damaged journal is moved.
const settingAside = "about to set aside"

// damage replaces the content of a journal.
var damage = bytes.Repeat([]byte("damage"), 4096)

// If retry is killed while it moves a damaged journal, the next run finishes the move: the damaged files are kept, none
// of them gets into the new journal, and the new journal is sound.
func TestKillsWhileSettingAside(t *testing.T) {
	binary := build(t, t.TempDir())
	for moved := range 5 {
		t.Run(fmt.Sprint(moved, " moved"), func(t *testing.T) {
			s := newTrial(binary, t.TempDir(), newTally(nil, 0))
			run := []string{"-b", "constant:0", "--", "true"}
			s.command(t, process{args: run}, false)
			for _, file := range []string{"journal.db", "journal.db-wal"} { // the one could make up for the other
				testkit.Must(t, os.WriteFile(filepath.Join(s.journal(), file), damage, 0o600))
			}
			s.command(t, process{args: run, kill: killPlan{step: settingAside, times: moved}}, true)
			s.command(t, process{args: run}, false)
			s.checkAside(t)
		})
	}
}

// command runs a process that must be killed or succeed.
func (s *trial) command(t *testing.T, a process, killed bool) {
	t.Helper()
	s.number++
	e, err := s.execute(a, s.number)
	testkit.Must(t, err)
	if e.killed != killed || (!killed && e.exit != 0) {
		t.Fatalf("%s: exit %d, killed %v\n%s", a.describe(s.number), e.exit, e.killed, e.stderr)
	}
}

func (s *trial) checkAside(t *testing.T) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(s.journal(), "corrupt-*", "journal.db"))
	testkit.Must(t, err)
	if len(kept) != 1 {
		t.Fatalf("damaged journal: got %q, want one copy", kept)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(text, damage) {
		t.Errorf("damaged journal: got changes, error %v, want none", err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(kept[0]), "journal.db-wal"))
	if err != nil || !bytes.Equal(text, damage) {
		t.Errorf("damaged WAL: got %d bytes, %v, want it unchanged", len(text), err)
	}
	testkit.Must(t, checkFile(filepath.Join(s.journal(), "journal.db")))
	records, err := readRecords(s.journal())
	testkit.Must(t, err)
	if len(records) != 1 || records[0].Number != 1 || len(records[0].attempts) != 1 {
		t.Errorf("the new journal holds %+v", records)
	}
}
