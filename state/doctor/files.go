package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
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
	if err != nil {
		e.add("file system", LevelOK, "", "the system does not tell")
		return
	}
	e.mounted(path, system)
	e.space(system)
}

func (e *examiner) mounted(path string, system lock.FileSystem) {
	const name, other = "file system", "use a directory of your own on a local disk with --state"
	switch {
	case system.Remote:
		e.fail(name, system.Check(path))
	case system.ReadOnly:
		e.add(name, LevelProblem, "mount it writable, or "+other, "%s is mounted read-only", path)
	case !lock.Writable(path):
		e.add(name, LevelProblem, "see who may read and write "+e.dir+", or "+other, "you may not write in %s", path)
	case system.FUSE:
		e.add(name, LevelWarning, "if it reaches over a network, "+other, "%s is on a file system in user space (FUSE)", path)
	default:
		e.add(name, LevelOK, "", "a local disk, writable")
	}
}

func (e *examiner) space(system lock.FileSystem) {
	const fix = "make room, or use another directory with --state"
	free := text.Size(int64(system.Free))
	switch {
	case system.NoInodes:
		e.add("space", LevelProblem, fix, "no inodes are left: no file can be made")
	case system.Free < noSpace:
		e.add("space", LevelProblem, fix, "%s free: what a task needs may not fit", free)
	case system.Free < littleSpace:
		e.add("space", LevelWarning, fix, "%s free", free)
	default:
		e.add("space", LevelOK, "", "%s free", free)
	}
}

// files looks at owners and modes. It reports false where one is not a regular file: a pipe in its place would never
// answer.
func (e *examiner) files() (regular bool) {
	sound, regular := 0, true
	const database = sqlite.DatabaseName
	for _, name := range []string{database, database + "-wal", database + "-shm", lock.OwnersFile} {
		path := e.path(name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = lock.CheckFile(path)
		}
		regular = regular && (info == nil || info.Mode().IsRegular())
		switch {
		case err != nil:
			e.fail("files", err)
		case !lock.Writable(path):
			e.add("files", LevelProblem, "chmod u+w "+path, "you may not write %s (mode %04o)", path, info.Mode().Perm())
		case info.Mode().Perm()&0o044 != 0 && runtime.GOOS != "windows":
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

// setAside looks at the journals that were set aside after damage.
func (e *examiner) setAside() {
	found := sqlite.Asides(e.dir)
	if len(found) == 0 {
		return
	}
	newest := found[len(found)-1]
	database := filepath.Join(newest, sqlite.DatabaseName)
	e.add("set aside", LevelWarning, "save what you need from it (sqlite3 "+database+" .recover), then remove it",
		"%s set aside after damage, the newest in %s", text.Count(len(found), "journal"), newest)
}
