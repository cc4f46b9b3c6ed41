package sqlite

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/10f93571/retry/state/lock"
)

// What chattr did is found, and its opposite helps. Not every file system has it, nor may everybody do it.
func TestExamineFindsAttributes(t *testing.T) {
	for _, tt := range []struct{ flag, name, check, want string }{
		{"+i", "", "directory", "is immutable"}, {"+a", databaseName, "files", "is append-only"}, {"+i", lock.OwnersFile, "files", "is immutable"},
	} {
		dir := closedJournal(t)
		path := filepath.Join(dir, tt.name)
		t.Cleanup(func() { _ = exec.Command("chattr", "-i", "-a", path).Run() }) // before the directory is removed
		if out, err := exec.Command("chattr", tt.flag, path).CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, out)
		}
		finds(t, dir, tt.check, LevelProblem, tt.want, "chattr -i -a "+path)
		must(t, exec.Command("chattr", "-i", "-a", path).Run())
		finds(t, dir, "files", LevelOK, "all yours", "")
	}
}
