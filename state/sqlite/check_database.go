package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
)

const (
	lockPatience = time.Second
	longWAL      = 64 << 20 // bytes; SQLite empties it at about 4 MB unless somebody reads all the time
)

// lock asks whether a write could begin. It keeps no lock itself.
func (e *examiner) lock() {
	for give := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		who, of, err := e.locker()
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return
		case err != nil:
			e.fail("lock", diagnose(e.dir, err))
			return
		case who == "":
			e.add("lock", LevelOK, "", "a write can begin")
			return
		case time.Now().After(give):
			e.add("lock", LevelProblem, "wait for its end, or stop it", "%s holds the lock of %s", who, of)
			return
		}
	}
}

// locker names a process that keeps others out, and of what; none where a write can begin.
func (e *examiner) locker() (who, of string, err error) {
	if lock.Held(e.dir) {
		return "another process", "the directory", nil
	}
	pid, err := holder(e.dir)
	if pid == 0 || err != nil {
		return "", "", err
	}
	return process(pid), "the journal", nil
}

// journal looks into the database.
func (e *examiner) journal() {
	if _, err := existing(e.dir); errors.Is(err, state.ErrNoJournal) {
		e.add("database", LevelOK, "", "none yet; the first run makes it")
		return
	}
	j, err := OpenReader(e.ctx, e.dir)
	if err != nil {
		e.fail("database", err)
		return
	}
	defer func() { _ = j.Close() }()
	e.form(j)
	if e.schema(j) && e.integrity(j) {
		e.tasks(j)
		e.damaged(j)
		e.policies(j)
	}
}

// form looks at what the file says of itself.
func (e *examiner) form(j *Journal) {
	var mode string
	version := len(migrations)
	err := j.row(e.ctx, "PRAGMA journal_mode", nil, &mode)
	switch {
	case err != nil:
		e.fail("database", j.diagnose(err))
		return
	case j.copied != "":
		e.add("database", LevelOK, "", "%s, read from a copy: it is of an older schema, or cannot be read in place", e.sizes())
	case mode != "wal":
		e.add("database", LevelWarning, "the next run sets it to wal", "its journal mode is %s", mode)
	default:
		e.add("database", LevelOK, "", "%s, schema %d, journal mode %s", e.sizes(), version, mode)
	}
	if wal := sizeOf(filepath.Join(e.dir, databaseName+walSuffix)); wal > longWAL {
		e.add("wal", LevelWarning, "see who reads the journal all the time; the last one to close it empties the WAL",
			"%s wait in the WAL, which makes every start slow", size(wal))
	}
}

func (e *examiner) sizes() string {
	database := filepath.Join(e.dir, databaseName)
	return size(sizeOf(database)) + " and " + size(sizeOf(database+walSuffix)) + " of WAL"
}

// sizeOf is 0 for what does not exist.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// integrity reports whether what is in the database can be believed.
func (e *examiner) integrity(j *Journal) bool {
	var verdict string
	var broken int
	err := j.row(e.ctx, "PRAGMA integrity_check(1)", nil, &verdict)
	if err == nil && verdict == "ok" {
		err = j.row(e.ctx, "SELECT count(*) FROM pragma_foreign_key_check", nil, &broken)
	}
	switch {
	case err != nil:
		e.fail("integrity", j.diagnose(err))
	case verdict != "ok":
		e.add("integrity", LevelProblem, e.moving(), "the journal is damaged: %s", verdict)
	case broken > 0:
		e.add("integrity", LevelProblem, e.moving(), "the journal is damaged: %s to no task", several(broken, "row belongs", "rows belong"))
	default:
		e.add("integrity", LevelOK, "", "no damage")
		return true
	}
	return false
}

// moving is the fix for damage that a run may not notice, and so not set aside.
func (e *examiner) moving() string {
	database, aside := filepath.Join(e.dir, databaseName), filepath.Join(e.dir, "damaged")
	return fmt.Sprintf("while no retry runs: mkdir %s && mv %s* %s; the next run begins a new one, and sqlite3 %s .recover saves what can be read of this one",
		aside, database, aside, filepath.Join(aside, databaseName))
}
