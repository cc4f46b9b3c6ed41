// Package doctor examines a journal, from its directory down to single tasks, and says what to do about what it finds.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
)

// The levels of a finding. A problem keeps the journal from being used; a warning needs a person's attention.
const (
	LevelOK      = "ok"
	LevelWarning = "warning"
	LevelProblem = "problem"
)

// Examine looks at everything that can keep a journal from being used. It changes nothing.
func Examine(ctx context.Context, explicit string, getenv func(string) string,
	now time.Time) (lock.Place, []state.Finding) {
	e := &examiner{ctx: ctx, now: now}
	e.add("sqlite", LevelOK, "", "SQLite %s", sqlite.Version())
	place, err := lock.Locate(explicit, getenv)
	if err != nil {
		e.fail("directory", err)
		return place, e.findings
	}
	e.dir = place.Dir
	if e.directory(place) {
		e.fileSystem()
		if e.files() {
			e.lock()
			e.journal()
		}
		e.setAside()
	}
	return place, e.findings
}

// examiner gathers findings.
type examiner struct {
	ctx      context.Context
	dir      string
	now      time.Time
	findings []state.Finding
}

func (e *examiner) add(name, level, fix, format string, args ...any) {
	e.findings = append(e.findings, state.Finding{Name: name, Level: level, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// fail adds an error as a problem, with its hint as the fix.
func (e *examiner) fail(name string, err error) {
	message, fix, found := strings.Cut(err.Error(), "\nhint: ")
	switch {
	case !found && errors.As(err, new(*fs.PathError)):
		fix = "see who may read and write " + e.dir
	case !found:
		fix = e.replacement()
	case errors.Is(err, state.ErrCorrupt):
		fix = fmt.Sprintf("retry -- COMMAND sets it aside and begins a new one; sqlite3 %s .recover saves what can be read",
			e.path(sqlite.DatabaseName))
	}
	e.add(name, LevelProblem, fix, "%s", message)
}

// replacement is the fix for damage that a run does not notice.
func (e *examiner) replacement() string {
	database, aside := e.path(sqlite.DatabaseName), e.path("damaged")
	return fmt.Sprintf("while no retry runs: mkdir %s && mv %s* %s; the next run begins a new one, "+
		"and sqlite3 %s/%s .recover saves what can be read of this one", aside, database, aside, aside, sqlite.DatabaseName)
}

func (e *examiner) path(name string) string { return filepath.Join(e.dir, name) }

// directory reports whether the directory exists.
func (e *examiner) directory(place lock.Place) bool {
	info, err := os.Stat(e.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		e.add("directory", LevelOK, "", "%s (%s) is not there yet; the first run makes it", e.dir, place.Source)
		e.fileSystem()
		return false
	case err != nil:
		e.fail("directory", err)
		return false
	case !info.IsDir():
		e.add("directory", LevelProblem, "move it away, or use another directory with --state",
			"%s (%s) is not a directory", e.dir, place.Source)
		return false
	}
	if err := lock.CheckOwner(e.dir, info); err != nil {
		e.fail("directory", err)
		return true
	}
	e.add("directory", LevelOK, "", "%s (%s), mode %04o", e.dir, place.Source, info.Mode().Perm())
	return true
}

const (
	littleSpace = 64 << 20  // bytes: a warning
	noSpace     = 256 << 10 // bytes: a task and its output may not fit
)

// fileSystem examines the file system of the journal, even before the directory exists.
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

// files examines owners and modes. It reports false if one is not a regular file: opening a pipe would block.
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

// setAside lists the journals that were set aside after damage.
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
