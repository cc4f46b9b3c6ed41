package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

const (
	lockPatience = 2 * time.Second // longer than a person waits without a line that says what is done
	longWAL      = 64 << 20        // bytes; SQLite empties it at about 4 MB unless somebody reads all the time
	clockSlack   = time.Minute     // a task may be made during the examination
	tasksListed  = 3               // how many tasks a finding lists by their ids
)

// lock examines whether a write could begin. It takes no lock itself.
func (e *examiner) lock() {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		holder, err := e.holder()
		switch {
		case errors.Is(err, errors.ErrUnsupported):
		case err != nil:
			e.fail("lock", err)
		case holder == "":
			e.add("lock", LevelOK, "", "a write can begin")
		case time.Now().Before(deadline):
			continue
		default:
			e.add("lock", LevelProblem, "wait for its end, or stop it", "%s holds the lock of the journal", holder)
		}
		return
	}
}

// The positions of SQLite's locks: a writer's in the index of the WAL, an exclusive one in the database itself.
const (
	writerByte    = 120
	exclusiveByte = 0x40000000
	exclusiveLen  = 512
)

// holder names the process that keeps others from writing, or returns "". This process must have no connection open:
// closing the files would drop its locks.
func (e *examiner) holder() (string, error) {
	if lock.Held(e.dir) {
		return "another process", nil
	}
	database := e.path(sqlite.DatabaseName)
	pid, err := lock.Blocker(database, false, exclusiveByte, exclusiveLen)
	if pid == 0 && err == nil {
		pid, err = lock.Blocker(database+"-shm", true, writerByte, 1)
	}
	switch pid {
	case 0:
		return "", err
	case lock.UnknownPID:
		return "a process of another container", err
	}
	return fmt.Sprintf("process %d", pid), err
}

// journal examines the database.
func (e *examiner) journal() {
	j, err := sqlite.OpenReader(e.ctx, e.dir)
	if errors.Is(err, state.ErrNoJournal) {
		e.add("database", LevelOK, "", "none yet; the first run makes it")
		return
	}
	if err != nil {
		e.fail("database", err)
		return
	}
	defer func() { _ = j.Close() }()
	found, err := j.Inspect(e.ctx, e.now.Add(clockSlack))
	if err != nil {
		e.fail("database", err)
		return
	}
	e.database(j, found)
	if e.integrity(found) {
		e.tasks(j)
		e.workers(j)
		e.clock(found)
	}
}

func (e *examiner) database(j *sqlite.Journal, found sqlite.Inspection) {
	size, err := j.Size()
	if err != nil {
		e.fail("database", err)
		return
	}
	e.add("database", LevelOK, "", "%s and %s of WAL, schema %d, journal mode %s",
		text.Size(size.Database), text.Size(size.WAL), found.Schema, found.Mode)
	if size.WAL > longWAL {
		e.add("wal", LevelWarning, "see who reads the journal all the time; the last one to close it empties the WAL",
			"%s wait in the WAL, which makes every start slow", text.Size(size.WAL))
	}
}

// integrity reports whether the content of the database is sound.
func (e *examiner) integrity(found sqlite.Inspection) bool {
	switch {
	case found.Damage != "":
		e.add("integrity", LevelProblem, e.replacement(), "the journal is damaged: %s", found.Damage)
	case found.Orphans > 0:
		e.add("integrity", LevelProblem, e.replacement(), "the journal is damaged: %s without a task",
			text.Count(found.Orphans, "row"))
	default:
		e.add("integrity", LevelOK, "", "no damage")
		return true
	}
	return false
}

// tasks lists interrupted tasks, without those that wait for the time their server asked for.
func (e *examiner) tasks(j *sqlite.Journal) {
	unfinished, err := j.Unfinished(e.ctx)
	if err != nil {
		e.fail("tasks", err)
		return
	}
	var interrupted []string
	for _, t := range unfinished {
		if t.Reason == task.ReasonDeferred && t.NextAttemptAt.After(e.now) {
			continue
		}
		if lost, err := j.Interrupted(e.ctx, t); err == nil && lost {
			interrupted = append(interrupted, t.ID[max(0, len(t.ID)-8):])
		}
	}
	n := len(interrupted)
	if n == 0 {
		e.add("tasks", LevelOK, "", "%d unfinished, none interrupted", len(unfinished))
		return
	}
	list := strings.Join(interrupted[:min(n, tasksListed)], ", ")
	if n > tasksListed {
		list += ", …"
	}
	e.add("tasks", LevelWarning, "retry resume --all, or retry cancel TASK", "%d interrupted: %s", n, list)
}

func (e *examiner) clock(found sqlite.Inspection) {
	if found.Future == 0 {
		e.add("clock", LevelOK, "", "no task is from the future")
		return
	}
	e.add("clock", LevelWarning, "set the clock right (date, timedatectl); budgets and waits count from these times",
		"%s from the future, up to %s ahead: the clock was set back",
		text.Count(found.Future, "task"), text.Duration(found.Latest.Sub(e.now)))
}
