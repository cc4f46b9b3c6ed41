package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
)

const (
	littleSpace = 64 << 20  // bytes: time to make room
	noSpace     = 256 << 10 // bytes: a task and its output may not fit
)

// fileSystem looks at the one that the journal is on, or will be.
func (e *examiner) fileSystem() {
	path, _, err := lock.Nearest(e.dir)
	if err != nil {
		e.fail("file system", err)
		return
	}
	system, err := lock.Statfs(path)
	e.system(path, system, err)
}

func (e *examiner) system(path string, system lock.FileSystem, err error) {
	name := system.Name
	if name == "" {
		name = "a local disk"
	}
	switch {
	case err != nil:
		e.add("file system", LevelOK, "", "the system does not tell")
		return
	case system.Remote:
		e.fail("file system", lock.CheckLocal(e.dir))
	case system.ReadOnly:
		e.add("file system", LevelProblem, "mount the file system of "+e.dir+" writable, or use another directory with --state", "%s is mounted read-only", path)
	case attribute(path) != "": // that was said of the directory
	case !writable(path):
		e.add("file system", LevelProblem, hintFor(state.ErrForbidden, e.dir), "you may not write in %s", path)
	case system.Unsure:
		e.add("file system", LevelWarning, "if it reaches over a network, use a directory on a local disk with --state",
			"%s is on %s, a file system in user space", path, name)
	case system.Memory:
		e.add("file system", LevelWarning, "use a directory on a disk with --state, where tasks are to be resumed after a reboot",
			"%s is in memory, and empty after a reboot", path)
	default:
		e.add("file system", LevelOK, "", "%s, writable", name)
	}
	e.space(system)
}

func (e *examiner) space(system lock.FileSystem) {
	const fix = "make room, or use another directory with --state"
	switch {
	case system.Counted && system.Inodes == 0:
		e.add("space", LevelProblem, fix, "no inodes are left: no file can be made")
	case system.Free < noSpace:
		e.add("space", LevelProblem, fix, "%s free: what a task needs may not fit", size(int64(system.Free)))
	case system.Free < littleSpace:
		e.add("space", LevelWarning, fix, "%s free", size(int64(system.Free)))
	default:
		e.add("space", LevelOK, "", "%s free", size(int64(system.Free)))
	}
}

// files looks at owners and modes. It reports false where one is no file: a pipe in its place would never answer.
func (e *examiner) files() (regular bool) {
	sound, regular := 0, true
	for _, name := range []string{databaseName, databaseName + walSuffix, databaseName + shmSuffix, lock.OwnersFile, reserveName} {
		path := filepath.Join(e.dir, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = lock.CheckFile(path)
		}
		regular = regular && (info == nil || info.Mode().IsRegular())
		a := attribute(path)
		switch {
		case err != nil:
			e.fail("files", err)
		case a != "":
			e.protected("files", path, a)
		case !writable(path):
			e.add("files", LevelProblem, "chmod u+w "+path, "you may not write %s (mode %04o)", path, info.Mode().Perm())
		case readableByOthers(info):
			e.add("files", LevelWarning, "chmod 600 "+path, "%s may be read by others (mode %04o)", path, info.Mode().Perm())
		default:
			sound++
		}
	}
	if sound > 0 {
		e.add("files", LevelOK, "", "%d, all yours and private", sound)
	}
	return regular
}

// protected is about what chattr did: the owner and the mode do not show it, and root may not write either.
func (e *examiner) protected(name, path string, a string) {
	e.add(name, LevelProblem, "chattr -i -a "+path+", as root", "%s is %s", path, a)
}

// inputs looks at where the stdins of tasks are kept.
func (e *examiner) inputs() {
	path := filepath.Join(e.dir, inputsName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return // the first that is kept makes it
	}
	info, err := os.Stat(path)
	switch a := attribute(path); {
	case err != nil, !info.IsDir():
		e.add("stdin", LevelWarning, "move "+path+" away", "%s is no directory: no stdin can be kept for a resume", path)
	case a != "":
		e.protected("stdin", path, a)
	case !writable(path):
		e.add("stdin", LevelWarning, "chmod u+wx "+path, "you may not write in %s (mode %04o): no stdin can be kept for a resume", path, info.Mode().Perm())
	}
}

// asides looks at the journals that were set aside.
func (e *examiner) asides() {
	found := asides(e.dir)
	if len(found) == 0 {
		return
	}
	newest := found[len(found)-1]
	age := ""
	if info, err := os.Stat(newest); err == nil {
		age = ", " + elapsed(e.now.Sub(info.ModTime())) + " ago"
	}
	e.add("set aside", LevelWarning, "save what you need from it (sqlite3 "+filepath.Join(newest, databaseName)+" .recover), then remove it",
		"%s after damage%s: %s", several(len(found), "journal was set aside", "journals were set aside"), age, newest)
}

// staleInputs returns the kept inputs that belong to none of the tasks.
func staleInputs(dir string, unfinished map[string]bool) (stale []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, inputsName))
	for _, entry := range entries {
		if !unfinished[strings.TrimSuffix(entry.Name(), partSuffix)] {
			stale = append(stale, filepath.Join(dir, inputsName, entry.Name()))
		}
	}
	return stale
}
