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
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// names are what is in a directory.
func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// A path is tried before anything runs, and nothing is left of the trial.
func TestTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(in("folder/inner"), 0o700))
	write(t, in("there"), "old")
	must(t, os.Symlink("../there", in("folder/link")))
	must(t, os.Symlink("link", in("folder/chain")))
	must(t, os.Symlink("inner", in("folder/way")))
	must(t, os.Symlink("way/promised", in("folder/ready")))
	must(t, os.Symlink("absent/x", in("folder/lost")))
	tests := []struct{ path, want, failure string }{
		{in("new"), in("new"), ""},
		{in("there"), in("there"), ""},
		{in("folder/../there"), in("there"), ""},
		{in("folder/link"), in("there"), ""},
		{in("folder/chain"), in("there"), ""},
		{in("folder/way/new"), in("folder/way/new"), ""},
		{in("folder/ready"), in("folder/way/promised"), ""},
		{os.DevNull, os.DevNull, ""},
		{dir, "", dir + " is a directory"},
		{in("folder/way"), "", "inner is a directory"},
		{in("folder/lost"), "", "create " + in("folder/absent/x") + ": no such file or directory"},
		{in("absent/new"), "", "create " + in("absent/new") + ": no such file or directory"},
		{in("there/new"), "", "create " + in("there/new") + ": not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			got, err := Target(tt.path)
			if got != tt.want || (err == nil) != (tt.failure == "") || (err != nil && !strings.Contains(err.Error(), tt.failure)) {
				t.Errorf("got %q, %v, want %q, %q", got, err, tt.want, tt.failure)
			}
		})
	}
	if left := names(t, dir); !slices.Equal(left, []string{"folder", "there"}) {
		t.Errorf("the trial left %q", left)
	}
	if left := names(t, in("folder")); !slices.Equal(left, []string{"chain", "inner", "link", "lost", "ready", "way"}) || contents(t, in("there")) != "old" {
		t.Errorf("the trial left %q", left)
	}
}

// A relative path is meant from where retry was started, wherever a resume's command runs.
func TestTargetIsAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	got, err := Target("report.json")
	if err != nil || got != filepath.Join(dir, "report.json") {
		t.Errorf("got %q, %v", got, err)
	}
}

// A file is replaced whole: nothing of the old one is left, whoever reads it meanwhile has all of it, and its mode stays.
func TestReplaceReplacesTheWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	write(t, path, strings.Repeat("old", 1000))
	must(t, os.Chmod(path, 0o640))
	reader, err := os.Open(path)
	must(t, err)
	defer func() { _ = reader.Close() }()

	must(t, Replace(path, []byte("new")))
	info, err := os.Stat(path)
	must(t, err)
	if got := contents(t, path); got != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, mode %o", got, info.Mode().Perm())
	}
	if old, err := reader.Stat(); err != nil || old.Size() != 3000 {
		t.Errorf("whoever was reading has %d bytes, %v", old.Size(), err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
}

func TestReplaceMakesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	must(t, Replace(path, []byte("new")))
	if got := contents(t, path); got != "new" {
		t.Errorf("got %q", got)
	}
}

// The link stays one; what it leads to is replaced.
func TestReplaceFollowsASymlink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	real, link := filepath.Join(dir, "data", "report.json"), filepath.Join(dir, "link")
	write(t, real, "old")
	must(t, os.Symlink(filepath.Join("data", "report.json"), link))
	path, err := Target(link)
	must(t, err)
	must(t, Replace(path, []byte("new")))
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || contents(t, real) != "new" {
		t.Errorf("%v, %v; the file holds %q", info, err, contents(t, real))
	}
}

// A device stays what it is: the report goes through it.
func TestReplaceWritesThroughADevice(t *testing.T) {
	read, device, err := os.Pipe()
	must(t, err)
	defer func() { _ = read.Close() }()
	path := fmt.Sprint("/dev/fd/", device.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no /dev/fd")
	}
	got, err := Target(path)
	if err != nil || got != path {
		t.Errorf("the target is %q, %v", got, err)
	}
	must(t, Replace(path, []byte("report")))
	_ = device.Close()
	if content, err := io.ReadAll(read); err != nil || string(content) != "report" {
		t.Errorf("got %q, %v", content, err)
	}
}
