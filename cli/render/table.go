package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
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
	Note  string // the last line; empty for none
}

// pageRows is how many rows decide which columns a table has, and how wide they are. What is longer follows row by row:
// only a page is kept in memory.
const pageRows = 1000

// column is one of a table. On a narrow screen those of the least weight are left out first.
type column struct {
	title    string
	weight   int
	optional bool // left out where it would be empty
}

// always is the weight of a column that is never left out.
const always = 9

func titles(columns []column) (titles []string) {
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	return titles
}

var taskColumns = []column{{title: "ID", weight: always}, {title: "STATUS", weight: always}, {title: "TRY", weight: 3},
	{title: "LAST", weight: 2, optional: true}, {title: "NEXT", weight: 1, optional: true}, {title: "AGE", weight: 4},
	{title: "COMMAND", weight: always}}

// Tasks draws the table of tasks. A column is one of taskColumns and a cell in row, at the same place.
func Tasks(w io.Writer, s Screen, tasks iter.Seq2[TaskView, error], table Table, now time.Time) error {
	d := drawing{screen: s, out: bufio.NewWriter(w)}
	for t, err := range tasks {
		if err != nil {
			_ = d.out.Flush()
			return err
		}
		if table.Limit > 0 && d.count == table.Limit {
			d.flush()
			_, _ = d.out.WriteString(s.cut(table.More) + "\n")
			break
		}
		if err := d.add(s.row(t, now)); err != nil {
			return err
		}
	}
	if d.count == 0 {
		_, _ = d.out.WriteString(table.None + "\n")
	} else {
		d.flush()
	}
	if table.Note != "" {
		_, _ = d.out.WriteString(s.cut(table.Note) + "\n")
	}
	return d.out.Flush()
}

// drawing is a table of tasks that is being drawn.
type drawing struct {
	screen Screen
	out    *bufio.Writer
	count  int        // of rows
	page   [][]string // the first rows, until they are drawn
	kept   []int      // the columns that are drawn
	widths []int      // of these; nil until the page is drawn
}

// add draws a row, or keeps it for the page. It fails where nobody reads any more.
func (d *drawing) add(row []string) error {
	d.count++
	if d.widths == nil {
		if d.page = append(d.page, row); len(d.page) == pageRows {
			d.flush()
		}
		return nil
	}
	_, err := d.out.WriteString(d.screen.line(pick([][]string{row}, d.kept)[0], d.widths) + "\n")
	return err
}

// flush draws the page.
func (d *drawing) flush() {
	if d.widths != nil {
		return
	}
	rows := append([][]string{titles(taskColumns)}, d.page...)
	d.kept = d.screen.columns(rows, taskColumns)
	rows = pick(rows, d.kept)
	d.widths = ColumnWidths(rows)
	_, _ = d.out.WriteString(d.screen.Rows(rows))
	d.page = nil
}

// columns returns which columns to draw, so that the last one can be read.
func (s Screen) columns(rows [][]string, columns []column) (kept []int) {
	for i, c := range columns {
		empty := func(row []string) bool { return row[i] == "-" }
		if !c.optional || !every(rows[1:], empty) {
			kept = append(kept, i)
		}
	}
	for s.Width > 0 && minTableWidth(pick(rows, kept)) > s.Width {
		least := slices.MinFunc(kept, func(a, b int) int { return cmp.Compare(columns[a].weight, columns[b].weight) })
		if columns[least].weight == always {
			break
		}
		kept = slices.DeleteFunc(kept, func(i int) bool { return i == least })
	}
	return kept
}

func every(rows [][]string, is func([]string) bool) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return !is(row) })
}

// pick returns some columns of a table.
func pick(rows [][]string, columns []int) [][]string {
	picked := make([][]string, len(rows))
	for i, row := range rows {
		for _, column := range columns {
			picked[i] = append(picked[i], row[column])
		}
	}
	return picked
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
		ShortID(t.ID), status, AttemptCount(t.Task), lastOutcome(t), nextAttempt(t, now), ageRoughly(t.CreatedAt, now),
		command,
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

// status writes the status of a task in a person's word. A task whose owner is dead waits for a resume, whatever status
// is stored.
func (s Screen) status(t TaskView) string {
	style := Blue
	switch {
	case t.Interrupted && !deferred(t):
		return s.Paint(Yellow, "interrupted")
	case t.Status == task.Succeeded:
		style = Green
	case t.Status == task.Exhausted || t.Status == task.Failed:
		style = Red
	case t.Status == task.Cancelled:
		style = Faint
	}
	return s.Paint(style, StatusWord(t.Status))
}

// StatusWord is what people read in place of a stored status.
func StatusWord(status task.Status) string {
	switch status {
	case task.Pending:
		return "waiting"
	case task.InFlight:
		return "running"
	case task.Exhausted:
		return "gave up"
	}
	return strings.ToLower(brief(string(status)))
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
	case o.Reply != nil && o.Reply.StatusName != "":
		return brief(o.Reply.StatusName)
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

// keptListed is how many tasks Kept names.
const keptListed = 8

// Kept writes which tasks are not pruned, since a run of their name has to wait for what they left running.
func Kept(w io.Writer, tasks []*task.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	var names []string
	for _, t := range tasks[:min(len(tasks), keptListed)] {
		names = append(names, ShortID(t.ID))
	}
	if len(tasks) > keptListed {
		names = append(names, "…")
	}
	_, err := fmt.Fprintf(w, "kept %s of which something may still run: %s\n", text.Count(len(tasks), "task"),
		strings.Join(names, ", "))
	return err
}
