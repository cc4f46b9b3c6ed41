package crash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// settingAside is the step that is passed before each of a damaged journal's files leaves.
const settingAside = "about to set aside"

// damage takes the place of a journal's content.
var damage = bytes.Repeat([]byte("damage"), 4096)

// Killed while it sets a damaged journal aside, retry leaves what the next one brings to an end: the damaged files are kept,
// nothing of them gets into the new journal, and that one is sound.
func TestKillsWhileSettingAside(t *testing.T) {
	binary := build(t, t.TempDir())
	for moved := range 5 {
		t.Run(fmt.Sprint(moved, " moved"), func(t *testing.T) {
			s := newScene(binary, t.TempDir(), newTally(nil, 0))
			run := []string{"-b", "constant:0", "--", "true"}
			s.command(t, actor{args: run}, false)
			for _, file := range []string{"journal.db", "journal.db-wal"} { // the one could make up for the other
				testkit.Must(t, os.WriteFile(filepath.Join(s.journal(), file), damage, 0o600))
			}
			s.command(t, actor{args: run, fate: fate{step: settingAside, times: moved}}, true)
			s.command(t, actor{args: run}, false)
			s.checkAside(t)
		})
	}
}

// command plays an actor that has to be killed, or to succeed.
func (s *scene) command(t *testing.T, a actor, killed bool) {
	t.Helper()
	s.number++
	e, err := s.play(a, s.number)
	testkit.Must(t, err)
	if e.killed != killed || (!killed && e.exit != 0) {
		t.Fatalf("%s: exit %d, killed %v\n%s", a.describe(s.number), e.exit, e.killed, e.stderr)
	}
}

func (s *scene) checkAside(t *testing.T) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(s.journal(), "corrupt-*", "journal.db"))
	testkit.Must(t, err)
	if len(kept) != 1 {
		t.Fatalf("the damaged journal is in %q", kept)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(text, damage) {
		t.Errorf("the damaged journal was changed: %v", err)
	}
	testkit.Must(t, checkFile(filepath.Join(s.journal(), "journal.db")))
	records, err := readRecords(s.journal())
	testkit.Must(t, err)
	if len(records) != 1 || records[0].Number != 1 || len(records[0].attempts) != 1 {
		t.Errorf("the new journal holds %+v", records)
	}
}
