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

// The levels of a finding. A problem keeps the journal from being used; a warning needs a person's attention.
const (
	LevelOK      = "ok"
	LevelWarning = "warning"
	LevelProblem = "problem"
)

// Examine looks at everything that can keep a journal from being used. It changes nothing.
func Examine(ctx context.Context, explicit string, getenv func(string) string, now time.Time) (lock.Place, []state.Finding) {
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
