package render

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// shortIDLength is how much of an id tables show: its end, since the beginning of a UUIDv7 is the same for a minute.
const shortIDLength = 8

// ShortID returns the part of an id that people see and type.
func ShortID(id string) string {
	return text.Escape(id[max(0, len(id)-shortIDLength):])
}

// Table says how much of a list is drawn, and the texts in place of what is not.
type Table struct {
	Limit int    // the most rows; 0 is no limit
	More  string // the line below a table that leaves tasks out
	None  string // the line instead of a table without rows
}

// Tasks draws the table of tasks. A column is a title here and a cell in row, at the same place. Only the rows are kept
// in memory.
func Tasks(w io.Writer, s Screen, tasks iter.Seq2[TaskView, error], table Table, now time.Time) error {
	rows := [][]string{{"ID", "STATUS", "ATTEMPTS", "LAST", "NEXT", "AGE", "COMMAND"}}
	more := false
	for t, err := range tasks {
		if err != nil {
			return err
		}
		if more = table.Limit > 0 && len(rows) > table.Limit; more {
			break
		}
		rows = append(rows, s.row(t, now))
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(w, table.None)
		return err
	}
	if err := s.WriteRows(w, rows); err != nil || !more {
		return err
	}
	_, err := fmt.Fprintln(w, s.cut(table.More))
	return err
}

func (s Screen) row(t TaskView, now time.Time) []string {
	command := titleUpTo(t.Task, longText)
	if t.Name != "" {
		command = brief(t.Name) + ": " + command
	}
	status := s.status(t)
	if t.Damage != nil {
		status += s.Paint(Red, " (damaged)")
	}
	return []string{
		ShortID(t.ID), status, AttemptCount(t.Task), lastOutcome(t), nextAttempt(t, now), age(t.CreatedAt, now), command,
	}
}

// ColumnWidths are the widths of the widest cells.
func ColumnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	return widths
}

// status writes the status of a task. A task whose owner is dead waits for a resume, whatever status is stored.
func (s Screen) status(t TaskView) string {
	switch {
	case t.Interrupted && !deferred(t):
		return s.Paint(Yellow, "INTERRUPTED")
	case t.Status == task.Succeeded:
		return s.Paint(Green, string(t.Status))
	case t.Status == task.Exhausted || t.Status == task.Failed:
		return s.Paint(Red, string(t.Status))
	case t.Status == task.Cancelled:
		return s.Paint(Faint, string(t.Status))
	}
	return s.Paint(Blue, brief(string(t.Status)))
}

// AttemptCount writes "2/5", or "2" where there is no limit. An interrupted attempt does not use up the limit, so the
// number after the slash grows by one with it. Until the next attempt starts, the old limit is shown.
func AttemptCount(t *task.Task) string {
	count := strconv.Itoa(t.AttemptCount)
	limit := t.MaxAttempts()
	if limit == 0 {
		return count
	}
	if t.History.Interrupted > 0 && t.Last.Number == t.AttemptCount && t.Last.Decision.Verdict == task.VerdictInterrupted {
		limit--
	}
	return count + "/" + strconv.Itoa(max(limit, t.AttemptCount))
}

func lastOutcome(t TaskView) string {
	switch {
	case t.Last.Number == 0:
		return "-"
	case t.Last.Decision.Verdict == "":
		return withoutOutcome(t)
	}
	return Outcome(t.Last.Outcome)
}

func withoutOutcome(t TaskView) string {
	if t.Interrupted {
		return "no outcome"
	}
	return "running"
}

func nextAttempt(t TaskView, now time.Time) string {
	switch {
	case deferred(t) && t.NextAttemptAt.After(now):
		return relative(t.NextAttemptAt, now)
	case t.Interrupted && t.Damage == nil:
		return "on resume"
	case t.Interrupted, t.NextAttemptAt.IsZero():
		return "-"
	}
	return relative(t.NextAttemptAt, now)
}

// Outcome says in a word or two how an attempt ended.
func Outcome(o task.Outcome) string {
	switch {
	case o.IsCrash():
		return "no outcome"
	case o.Error != task.ErrorNone:
		return brief(string(o.Error))
	case o.Signal != "":
		return brief(o.Signal)
	case o.Reply != nil && o.Reply.Status > 0:
		return strconv.Itoa(o.Reply.Status)
	case o.Exit == 0:
		return "ok"
	}
	return "exit " + strconv.Itoa(o.Exit)
}

// Prunable says how many finished tasks a prune would remove, and when the first and the last of them ended.
func Prunable(w io.Writer, tasks int, oldest, newest, now time.Time) error {
	line := "would prune no task"
	switch {
	case tasks == 1:
		line = "would prune 1 task, which finished " + Stamp(oldest, now)
	case tasks > 1:
		line = fmt.Sprintf("would prune %s: the oldest finished %s, the newest %s",
			text.Count(tasks, "task"), Stamp(oldest, now), Stamp(newest, now))
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
