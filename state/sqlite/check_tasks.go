package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// tasksListed is how many tasks a finding lists by their ids.
const tasksListed = 3

// tasks looks for those that need somebody.
func (e *examiner) tasks(j *Journal) {
	unfinished, err := j.Unfinished(e.ctx)
	if err != nil {
		e.fail("tasks", j.diagnose(err))
		return
	}
	var interrupted, deferred, homeless, inputless []string
	numbers := map[string]bool{}
	for _, t := range unfinished {
		numbers[inputName(t.Number, t.ID)] = true
		if cut, err := j.Interrupted(e.ctx, t); err != nil || !cut || t.Damage != nil {
			continue
		}
		id := shortID(t)
		if t.Reason == task.ReasonDeferred && t.NextAttemptAt.After(e.now) {
			deferred = append(deferred, id)
		} else {
			interrupted = append(interrupted, id)
		}
		if info, err := os.Stat(t.Directory); err != nil || !info.IsDir() {
			homeless = append(homeless, id)
		}
		if inputLost(j, t) {
			inputless = append(inputless, id)
		}
	}
	e.unresumed(len(unfinished), interrupted, deferred)
	e.unresumable(homeless, inputless)
	e.future(j)
	if stale := staleInputs(j.dir, numbers); len(stale) > 0 {
		e.add("stdin", LevelWarning, "rm "+strings.Join(stale, " "), "%s of tasks that have ended", several(len(stale), "input was kept", "inputs were kept"))
	}
}

func inputLost(j *Journal, t *task.Task) bool {
	if !t.KeepsInput() {
		return false
	}
	file, err := j.Input(t)
	if err == nil {
		_ = file.Close()
	}
	return errors.Is(err, state.ErrInputLost)
}

// unresumed tells of those that wait for somebody. One whose server said when to come back waits for that time first.
func (e *examiner) unresumed(unfinished int, interrupted, deferred []string) {
	if len(deferred) > 0 {
		e.add("tasks", LevelOK, "", "%s for the time that a server named: %s", several(len(deferred), "waits", "wait"), list(deferred))
	}
	if len(interrupted) == 0 {
		e.add("tasks", LevelOK, "", "%d unfinished, none interrupted", unfinished)
		return
	}
	e.add("tasks", LevelWarning, "retry resume --all, or retry cancel TASK", "%s interrupted: %s", several(len(interrupted), "was", "were"), list(interrupted))
}

// unresumable tells of those that lack what they need.
func (e *examiner) unresumable(homeless, inputless []string) {
	if len(homeless) > 0 {
		e.add("tasks", LevelWarning, "make the directory again, or retry cancel "+homeless[0], "the directory of %s is gone", list(homeless))
	}
	if len(inputless) > 0 {
		e.add("tasks", LevelWarning, "start it anew, then retry cancel "+inputless[0], "the stdin of %s is lost", list(inputless))
	}
}

// damaged finds tasks that cannot be read whole, finished ones too.
func (e *examiner) damaged(j *Journal) {
	var open, ended, remembered []string
	for t, err := range j.All(e.ctx, state.Filter{}) {
		switch {
		case err != nil:
			e.fail("tasks", j.diagnose(err))
			return
		case t.Damage == nil:
		case !t.Status.Finished():
			open = append(open, shortID(t))
		case t.FinishedAt.IsZero() || t.Once && t.Status == task.Succeeded: // a prune passes it over
			remembered = append(remembered, strconv.FormatInt(t.Number, 10))
			fallthrough
		default:
			ended = append(ended, shortID(t))
		}
	}
	e.unread(open, ended, remembered)
}

func (e *examiner) unread(open, ended, remembered []string) {
	const text = "%s whole (retry status %s tells more): %s"
	if len(open) > 0 {
		e.add("tasks", LevelWarning, "retry cancel "+strings.Join(open, " "), text, several(len(open), "task cannot be read", "tasks cannot be read"), open[0], list(open))
	}
	if len(ended) == 0 {
		return
	}
	fix := "retry prune --older-than 0 removes what has finished"
	if len(remembered) > 0 {
		fix += fmt.Sprintf(`; and sqlite3 %s "PRAGMA foreign_keys = ON; DELETE FROM tasks WHERE number IN (%s)" what it keeps`,
			filepath.Join(e.dir, databaseName), strings.Join(remembered, ", "))
	}
	e.add("tasks", LevelWarning, fix, text, several(len(ended), "finished task cannot be read", "finished tasks cannot be read"), ended[0], list(ended))
}

// policies finds those that cannot be read: their runs are not tried again.
func (e *examiner) policies(j *Journal) {
	all, err := j.Policies(e.ctx)
	if err != nil {
		e.fail("policies", j.diagnose(err))
		return
	}
	var names []string
	for _, p := range all {
		if p.Damage != nil {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		e.add("policies", LevelProblem, "retry policy set NAME writes it anew, retry policy rm NAME removes it", "%s: %s",
			several(len(names), "policy cannot be read", "policies cannot be read"), list(names))
	}
}

// shortID is the part of an id that people see and type.
func shortID(t *task.Task) string { return t.ID[max(0, len(t.ID)-8):] }

// future finds what a clock that was set back left behind.
func (e *examiner) future(j *Journal) {
	var tasks, latest integer
	const query = "SELECT count(*), coalesce(max(created_at), 0) FROM tasks WHERE created_at > ?"
	err := j.row(e.ctx, query, []any{e.now.Add(time.Minute).UnixMicro()}, &tasks, &latest)
	switch {
	case err != nil:
		e.fail("clock", j.diagnose(err))
	case tasks.Int64 > 0:
		e.add("clock", LevelWarning, "set the clock right (date, timedatectl); budgets and waits count from these times", "%s in the future, up to %s from now: the clock was set back",
			several(int(tasks.Int64), "task was made", "tasks were made"), elapsed(moment(latest).Sub(e.now)))
	default:
		e.add("clock", LevelOK, "", "no task is from the future")
	}
}

func list(ids []string) string {
	if len(ids) <= tasksListed {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:tasksListed], ", ") + " and " + strconv.Itoa(len(ids)-tasksListed) + " more"
}
