// Package doctor examines a journal, from its directory down to single tasks, and says what to do about what it finds.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
)

// Level says how bad a finding is.
type Level string

// The levels. A problem keeps a journal from being used; a warning asks for somebody's eyes.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelProblem Level = "problem"
)

// Check is one finding: what was looked at, what was found, and what to do about it.
type Check struct {
	Name  string
	Level Level
	Text  string
	Fix   string // empty where nothing has to be done
}

// Examine looks at everything that can keep a journal from being used. It changes nothing.
func Examine(ctx context.Context, explicit string, getenv func(string) string, now time.Time) (lock.Place, []Check) {
	e := &examiner{ctx: ctx, now: now}
	e.add("sqlite", LevelOK, "", "SQLite %s", sqlite.Version())
	place, err := lock.Locate(explicit, getenv)
	if err != nil {
		e.fail("directory", err)
		return place, e.checks
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
	return place, e.checks
}

// examiner gathers findings.
type examiner struct {
	ctx    context.Context
	dir    string
	now    time.Time
	checks []Check
}

func (e *examiner) add(name string, level Level, fix, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, Level: level, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// fail adds an error as a problem; its hint is the fix.
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

// replacement is the fix for damage that a run may not notice, and so not set aside.
func (e *examiner) replacement() string {
	database, aside := e.path(sqlite.DatabaseName), e.path("damaged")
	return fmt.Sprintf("while no retry runs: mkdir %s && mv %s* %s; the next run begins a new one, "+
		"and sqlite3 %s/%s .recover saves what can be read of this one", aside, database, aside, aside, sqlite.DatabaseName)
}

func (e *examiner) path(name string) string { return filepath.Join(e.dir, name) }

// directory reports whether there is one to look into.
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
