package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/testkit"
)

func TestPruneRetention(t *testing.T) {
	now := time.Now()
	hour, zero := flags.Duration(time.Hour), flags.Duration(0)
	tests := map[string]struct {
		command pruneCommand
		want    time.Time
	}{
		"by default": {command: pruneCommand{}, want: now.Add(-30 * 24 * time.Hour)},
		"an age":     {command: pruneCommand{OlderThan: &hour}, want: now.Add(-time.Hour)},
		"any age":    {command: pruneCommand{OlderThan: &zero}, want: time.Time{}},
	}
	for name, tt := range tests {
		got, err := tt.command.retention(func(string) string { return "" }, now)
		if err != nil || !got.Before.Equal(tt.want) || got.Rows != pruneRows || len(got.Statuses) > 0 {
			t.Errorf("%s: got %+v, %v, want tasks before %v", name, got, err, tt.want)
		}
	}
}

// A file that is there keeps its mode, also behind a link, and nothing stands beside it that a collector would
// take for one.
func TestWriteTextfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "retry.prom")
	testkit.Must(t, os.WriteFile(path, []byte("old, and longer than the new one"), 0o600))
	before, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Must(t, os.Symlink("retry.prom", filepath.Join(dir, "link.prom")))
	testkit.Must(t, writeTextfile(filepath.Join(dir, "link.prom"), []byte("new")))
	after, err := os.Stat(path)
	testkit.Must(t, err)
	if testkit.Contents(t, path) != "new" || after.Mode() != fs.FileMode(0o600) || !os.SameFile(before, after) {
		t.Errorf("got %q with mode %v, want the new text in the file that the link leads to, with mode 0600",
			testkit.Contents(t, path), after.Mode())
	}
	if got := testkit.Names(t, dir); !slices.Equal(got, []string{"link.prom", "retry.prom"}) {
		t.Errorf("got the files %q, want the link and its target alone", got)
	}
}
