//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/state/lock"
)

// modes returns the permissions of a directory, as ".", and of what is in it.
func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		name, _ := filepath.Rel(dir, path)
		found[name] = info.Mode().Perm()
		return err
	}))
	return found
}

func checkPrivate(t *testing.T, dir string, names ...string) {
	t.Helper()
	found := modes(t, dir)
	if len(found) != len(names)+1 || found["."] != 0o700 {
		t.Errorf("the directory is %04o and holds %v, not %v", found["."], found, names)
	}
	for _, name := range names {
		if found[name] != 0o600 {
			t.Errorf("%s is %04o", name, found[name])
		}
	}
}

// Everything is private from the moment it exists, whatever the umask.
func TestFilesArePrivateFromTheFirst(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	dir := filepath.Join(above, "state")
	p := startPuppet(t)
	p.ask("umask")
	p.ask("prepare", dir) // before SQLite has seen them
	checkPrivate(t, dir, DatabaseName, lock.OwnersFile)
	if mode := modes(t, above)["."]; mode != 0o700 {
		t.Errorf("the directory above is %04o", mode)
	}
	p.ask("open", dir)
	p.create()
	checkPrivate(t, dir, DatabaseName, DatabaseName+"-shm", DatabaseName+"-wal", lock.OwnersFile, reserveName)
	p.ask("close")
	checkPrivate(t, dir, DatabaseName, lock.OwnersFile, reserveName)
}

// What a command reads may be secret: it is as private as the rest, while it comes and when it is whole.
func TestInputsArePrivateFromTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	p := startPuppet(t)
	p.ask("umask")
	p.ask("open", dir)
	var names []string
	for _, order := range []string{"part", "keep"} {
		number, id := p.create()
		p.ask(order, number)
		names = append(names, inputName(number, id))
	}
	checkPrivate(t, filepath.Join(dir, inputsName), names[0]+partSuffix, names[1])
}

// A directory that others may read is a choice of its owner.
func TestAReadableDirectoryIsAccepted(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	inFlight(t, openIn(t, dir))
}

func TestWhatOthersCouldHavePutThereIsRefused(t *testing.T) {
	touch := func(t *testing.T, path string, mode fs.FileMode) {
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Chmod(path, mode))
	}
	tests := []struct {
		name string
		make func(t *testing.T, dir string)
		want string // DIR stands for the directory
	}{
		{"directory 0777", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777)) }, "mode 0777)\nhint: chmod go-w DIR"},
		{"directory 0770", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o770)) }, "hint: chmod go-w DIR"},
		{"directory 1777", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777|fs.ModeSticky)) }, "hint: chmod go-w DIR"},
		{"database 0666", func(t *testing.T, dir string) { touch(t, dir+"/journal.db", 0o666) }, "hint: chmod go-w DIR/journal.db"},
		{"locks 0620", func(t *testing.T, dir string) { touch(t, dir+"/owners.lock", 0o620) }, "hint: chmod go-w DIR/owners.lock"},
		{"database a symlink", func(t *testing.T, dir string) {
			touch(t, dir+"/elsewhere", 0o600)
			must(t, os.Symlink("elsewhere", dir+"/journal.db"))
		}, "DIR/journal.db is not a regular file\nhint: move it away, or use another directory with --state"},
		{"locks a symlink", func(t *testing.T, dir string) {
			touch(t, dir+"/elsewhere", 0o600)
			must(t, os.Symlink("elsewhere", dir+"/owners.lock"))
		}, "DIR/owners.lock is not a regular file"},
		{"database a symlink to nothing", func(t *testing.T, dir string) {
			must(t, os.Symlink("nothing", dir+"/journal.db"))
		}, "DIR/journal.db is not a regular file"},
		{"database a directory", func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/journal.db", 0o700)) }, "not a regular file"},
		{"database a pipe", func(t *testing.T, dir string) { must(t, syscall.Mkfifo(dir+"/journal.db", 0o600)) }, "not a regular file"},
		{"directory a file", func(t *testing.T, dir string) {
			must(t, os.Remove(dir))
			touch(t, dir, 0o600)
		}, "DIR: not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			must(t, os.Mkdir(dir, 0o700))
			test.make(t, dir)
			checkRefused(t, dir, test.want)
		})
	}
}

// checkRefused checks the message, and that nothing was written to what was refused.
func checkRefused(t *testing.T, dir, want string) {
	t.Helper()
	j, err := Open(t.Context(), dir)
	if err == nil {
		_ = j.Close()
		t.Fatal("not refused")
	}
	if want = strings.ReplaceAll(want, "DIR", dir); !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "open the journal") {
		t.Errorf("got %v\nwant %s", err, want)
	}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err != nil || (info.Mode().IsRegular() && info.Size() > 0) {
			t.Errorf("%s was written: %v", path, err)
		}
		return nil
	}))
}

// The fix that the message names is one.
func TestTheHintedFixHelps(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	checkRefused(t, dir, "hint: chmod go-w DIR")
	must(t, os.Chmod(dir, 0o755))
	inFlight(t, openIn(t, dir))
}

func TestWhatBelongsToAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	for _, name := range []string{"", DatabaseName, lock.OwnersFile} {
		t.Run("the directory "+name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if name != "" {
				must(t, os.WriteFile(path, nil, 0o600))
			}
			must(t, os.Chown(path, nobody, nobody))
			checkRefused(t, dir, path+" belongs to user 65534, not to you (0)\nhint: chown it, or use a directory of your own with --state")
		})
	}
}
