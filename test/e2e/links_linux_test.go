package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// Root that writes to a name in a sticky directory does not follow another user's link, where the kernel forbids it.
func TestLinksOfOthersAreNotFollowed(t *testing.T) {
	if protected, err := os.ReadFile("/proc/sys/fs/protected_symlinks"); err != nil || protected[0] != '1' || os.Getuid() != 0 {
		t.Skip("it takes root, and fs.protected_symlinks")
	}
	s := newJournalTest(t)
	dir := t.TempDir()
	testkit.Must(t, os.Chmod(dir, 0o777|os.ModeSticky))
	victim, link := filepath.Join(t.TempDir(), "victim"), filepath.Join(dir, "link.prom")
	testkit.Write(t, victim, "old")
	testkit.Must(t, os.Symlink(victim, link))
	const nobody = 65534
	testkit.Must(t, os.Lchown(link, nobody, nobody))
	for _, args := range [][]string{
		{"--report", link, "--", "true"}, {"metrics", "--textfile", link}, {"plot", "exp:1s", "--svg", link},
		{"plot", "exp:1s", "--png", link}, {"plot", "exp:1s", "--html", link}, {"http", "-o", link, "http://127.0.0.1:9/"},
	} {
		got := s.run("retry", args...)
		if got.code == 0 || !strings.Contains(got.stderr, "permission denied") || testkit.Contents(t, victim) != "old" {
			t.Errorf("%q: got %+v, want a permission denied, and the link's target as it was", args, got)
		}
	}
}
