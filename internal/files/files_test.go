package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// Target tries the path before anything runs, and leaves no file of the trial.
func TestTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	in := func(name string) string { return filepath.Join(dir, name) }
	testkit.Must(t, os.MkdirAll(in("folder/inner"), 0o700))
	testkit.Write(t, in("there"), "old")
	testkit.Must(t, os.Symlink("../there", in("folder/link")))
	testkit.Must(t, os.Symlink("link", in("folder/chain")))
	testkit.Must(t, os.Symlink("inner", in("folder/way")))
	testkit.Must(t, os.Symlink("way/promised", in("folder/ready")))
	testkit.Must(t, os.Symlink("absent/x", in("folder/lost")))
	tests := []struct{ path, want, failure string }{
		{in("new"), in("new"), ""},
		{in("there"), in("there"), ""},
		{in("folder/../there"), in("there"), ""},
		{in("folder/link"), in("folder/link"), ""}, // the kernel finds the way
		{in("folder/chain"), in("folder/chain"), ""},
		{in("folder/way/new"), in("folder/way/new"), ""},
		{in("folder/ready"), in("folder/ready"), ""},
		{os.DevNull, os.DevNull, ""},
		{dir, "", dir + " is a directory"},
		{in("folder/way"), "", "way is a directory"},
		{in("folder/lost"), "", "open " + in("folder/lost") + ": no such file or directory"},
		{in("absent/new"), "", "create " + in("absent/new") + ": no such file or directory"},
		{in("there/new"), "", "create " + in("there/new") + ": not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			got, err := Target(tt.path)
			if got != tt.want || (err == nil) != (tt.failure == "") ||
				(err != nil && !strings.Contains(err.Error(), tt.failure)) {
				t.Errorf("got %q, %v, want %q, %q", got, err, tt.want, tt.failure)
			}
		})
	}
	if left := testkit.Names(t, dir); !slices.Equal(left, []string{"folder", "there"}) {
		t.Errorf("got %q in the directory, want no trial", left)
	}
	if left := testkit.Names(t, in("folder")); !slices.Equal(left,
		[]string{"chain", "inner", "link", "lost", "ready", "way"}) || testkit.Contents(t, in("there")) != "old" {
		t.Errorf("got %q in the folder, want no trial", left)
	}
}

// A relative path is relative to the directory in which retry was started, also for a resume elsewhere.
func TestTargetIsAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	got, err := Target("report.json")
	if err != nil || got != filepath.Join(dir, "report.json") {
		t.Errorf("got %q, %v, want %q", got, err, filepath.Join(dir, "report.json"))
	}
}

// A file is replaced at once: a reader that has it open reads all of the old content, and the mode stays.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	testkit.Write(t, path, strings.Repeat("old", 1000))
	testkit.Must(t, os.Chmod(path, 0o640))
	reader, err := os.Open(path)
	testkit.Must(t, err)
	defer func() { _ = reader.Close() }()

	testkit.Must(t, Replace(path, []byte("new")))
	info, err := os.Stat(path)
	testkit.Must(t, err)
	if got := testkit.Contents(t, path); got != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, mode %o, want %q, mode 640", got, info.Mode().Perm(), "new")
	}
	if old, err := reader.Stat(); err != nil || old.Size() != 3000 {
		t.Errorf("old file: got %d bytes, %v, want 3000", old.Size(), err)
	}
	if left := testkit.Names(t, dir); len(left) != 1 {
		t.Errorf("got %q in the directory, want one file", left)
	}
}

func TestReplaceMakesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	testkit.Must(t, Replace(path, []byte("new")))
	if got := testkit.Contents(t, path); got != "new" {
		t.Errorf("got %q, want %q", got, "new")
	}
}

// A symbolic link stays, and its target is opened through it: a file that took the target's place would show that retry
// followed the link by itself, where fs.protected_symlinks asks the kernel.
func TestReplaceWritesThroughASymlink(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	real, link := filepath.Join(dir, "data", "report.json"), filepath.Join(dir, "link")
	testkit.Write(t, real, "old and longer")
	before, err := os.Stat(real)
	testkit.Must(t, err)
	testkit.Must(t, os.Symlink(filepath.Join("data", "report.json"), link))
	path, err := Target(link)
	testkit.Must(t, err)
	testkit.Must(t, Replace(path, []byte("new")))
	after, err := os.Stat(real)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("got another file, %v, want the one that the link leads to", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || testkit.Contents(t, real) != "new" {
		t.Errorf("got %v, %v, content %q, want a link to %q", info, err, testkit.Contents(t, real), "new")
	}
}

// A device is written to, not replaced.
func TestReplaceWritesThroughADevice(t *testing.T) {
	read, device, err := os.Pipe()
	testkit.Must(t, err)
	defer func() { _ = read.Close() }()
	path := fmt.Sprint("/dev/fd/", device.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no /dev/fd")
	}
	got, err := Target(path)
	if err != nil || got != path {
		t.Errorf("got target %q, %v, want %q", got, err, path)
	}
	testkit.Must(t, Replace(path, []byte("report")))
	_ = device.Close()
	if content, err := io.ReadAll(read); err != nil || string(content) != "report" {
		t.Errorf("got %q, %v, want %q", content, err, "report")
	}
}
