package ci

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// stepSummary appends the result of a task to the summary page of a GitHub job, unless its first attempt succeeded.
type stepSummary struct {
	render.Observer
	path     string
	attempts map[string]*attemptRows // by task, since several runs may share the observer
}

func (s *stepSummary) Ended(t *task.Task, a task.Attempt) {
	s.Observer.Ended(t, a)
	if s.attempts[t.ID] == nil {
		s.attempts[t.ID] = &attemptRows{}
	}
	s.attempts[t.ID].add(row(a))
}

func (s *stepSummary) Finished(t *task.Task, r runner.Result) {
	s.Observer.Finished(t, r)
	attempts := s.attempts[t.ID]
	delete(s.attempts, t.ID)
	result := render.Summary(t, r)
	if result == "" {
		return
	}
	if err := appendFile(s.path, taskSummary(t, result, attempts)); err != nil {
		s.Warn(fmt.Errorf("write the step summary: %w", err))
	}
}

// keptAtEachEnd bounds the memory of a task without a limit of attempts, and the page, which GitHub drops when it is
// over 1 MiB.
const keptAtEachEnd = 25

// attemptRows holds the rows of the first and of the last attempts of a task.
type attemptRows struct {
	first, last []string
	leftOut     int // between them
}

func (r *attemptRows) add(row string) {
	if len(r.first) < keptAtEachEnd {
		r.first = append(r.first, row)
		return
	}
	if len(r.last) == keptAtEachEnd {
		r.last = slices.Delete(r.last, 0, 1)
		r.leftOut++
	}
	r.last = append(r.last, row)
}

// taskSummary writes the Markdown for one task. The empty line in front ends whatever the command itself wrote to the
// page.
func taskSummary(t *task.Task, result string, attempts *attemptRows) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s: %s\n\n", codeSpan(shortened(render.Title(t))), markdown(shortened(result)))
	if attempts == nil {
		return b.String()
	}
	b.WriteString("| Attempt | Started | Took | Outcome | Then |\n|--:|---|--:|---|---|\n")
	b.WriteString(strings.Join(attempts.first, ""))
	if attempts.leftOut > 0 {
		fmt.Fprintf(&b, "| … | | | %s left out | |\n", text.Count(attempts.leftOut, "attempt"))
	}
	b.WriteString(strings.Join(attempts.last, ""))
	return b.String()
}

func row(a task.Attempt) string {
	return fmt.Sprintf("| %d | %s | %s | %s | %s |\n",
		a.Number, a.StartedAt.UTC().Format(time.RFC3339), text.Duration(a.Outcome.Duration),
		markdown(shortened(render.Description(a.Outcome, a.Decision))), render.AfterAttempt(a))
}

// markdown makes escaped text stand for itself, also in a cell of a table. A character reference never begins a
// structure, while of a backslash before a pipe parsers think differently.
func markdown(text string) string { return markdownStructure.Replace(text) }

var markdownStructure = strings.NewReplacer(
	"&", "&#38;", "<", "&#60;", ">", "&#62;", "|", "&#124;", "`", "&#96;", `\`, "&#92;", "*", "&#42;", "_", "&#95;",
	"~", "&#126;", "[", "&#91;", "]", "&#93;", "#", "&#35;", "@", "&#64;", "$", "&#36;",
	"://", "&#58;//", "www.", "www&#46;")

// codeSpan shows escaped text as code, outside a table. It leaves the text as it is, so that GitHub knows a secret in
// it and masks it.
func codeSpan(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 { // spaces keep a backtick of the text off the fence
		text = " " + text + " "
	}
	return fence + text + fence
}

func appendFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return cmp.Or(err, file.Close())
}
