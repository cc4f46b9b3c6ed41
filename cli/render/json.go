package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/10f93571/retry/runner"
)

// TaskView is a task as it is shown: with what the journal alone does not tell.
type TaskView struct {
	*runner.Task
	Interrupted bool // unfinished, and its owner is dead
}

// taskJSON is the stable form of a task; docs/json.md describes it.
type taskJSON struct {
	ID             string         `json:"id"`
	Name           *string        `json:"name"`
	Kind           runner.Kind    `json:"kind"`
	Status         runner.Status  `json:"status"`
	Interrupted    bool           `json:"interrupted"`
	Reason         *string        `json:"reason"`
	Command        []string       `json:"command"`
	Directory      *string        `json:"directory"`
	Request        *requestJSON   `json:"request"`
	Policy         runner.Policy  `json:"policy"`
	IdempotencyKey string         `json:"idempotency_key"`
	AttemptCount   int            `json:"attempt_count"`
	CreatedAt      *string        `json:"created_at"`
	FinishedAt     *string        `json:"finished_at"`
	NextAttemptAt  *string        `json:"next_attempt_at"`
	Attempts       *[]attemptJSON `json:"attempts,omitempty"` // left out of lists
}

type requestJSON struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

type attemptJSON struct {
	Number          int     `json:"number"`
	StartedAt       *string `json:"started_at"`
	DurationMS      *int64  `json:"duration_ms"`
	Exit            *int    `json:"exit"`
	Signal          *string `json:"signal"`
	HTTPStatus      *int    `json:"http_status"`
	Error           *string `json:"error"`
	Message         *string `json:"message"`
	Decision        *string `json:"decision"`
	DelayMS         *int64  `json:"delay_ms"`
	StdoutTail      *string `json:"stdout_tail"`
	StderrTail      *string `json:"stderr_tail"`
	RequestsWritten *int    `json:"requests_written"`
}

// TasksJSON writes a list of tasks.
func TasksJSON(w io.Writer, tasks []TaskView) error {
	list := make([]taskJSON, len(tasks))
	for i, t := range tasks {
		list[i] = taskToJSON(t)
	}
	return writeJSON(w, map[string]any{"tasks": list})
}

// TaskJSON writes one task with its attempts.
func TaskJSON(w io.Writer, t TaskView, attempts []runner.Attempt) error {
	list := make([]attemptJSON, len(attempts))
	for i, a := range attempts {
		list[i] = attemptToJSON(a)
	}
	task := taskToJSON(t)
	task.Attempts = &list
	return writeJSON(w, task)
}

// writeJSON writes what a command brought along so that a terminal just draws it, too: JSON itself lets DEL, C1 and bidirectional
// characters stand.
func writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, escapeJSON(text.String()))
	return err
}

// escapeJSON writes the characters of JSON that are not safe as \u009b and the like. They can only stand in strings.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case safe(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func taskToJSON(t TaskView) taskJSON {
	return taskJSON{
		ID: t.ID, Name: present(t.Name), Kind: t.Kind, Status: t.Status, Interrupted: t.Interrupted, Reason: present(string(t.Reason)),
		Command: t.Command, Directory: present(t.Directory), Policy: t.Policy, IdempotencyKey: t.IdempotencyKey,
		AttemptCount: t.AttemptCount, CreatedAt: timestamp(t.CreatedAt), FinishedAt: timestamp(t.FinishedAt),
		NextAttemptAt: timestamp(t.NextAttemptAt),
	}
}

func attemptToJSON(a runner.Attempt) attemptJSON {
	j := attemptJSON{
		Number: a.Number, StartedAt: timestamp(a.StartedAt), Decision: present(string(a.Decision.Verdict)),
		Signal: present(a.Outcome.Signal), Error: present(string(a.Outcome.Error)), Message: present(a.Outcome.Message),
		StdoutTail: present(a.Outcome.Stdout), StderrTail: present(a.Outcome.Stderr),
	}
	if !a.Outcome.IsCrash() { // neither has an attempt in flight an exit or a duration
		exit, duration := a.Outcome.Exit, a.Outcome.Duration.Milliseconds()
		j.Exit, j.DurationMS = &exit, &duration
	}
	if a.Decision.Verdict == runner.VerdictRetry {
		delay := a.Decision.Delay.Milliseconds()
		j.DelayMS = &delay
	}
	return j
}

func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return &text
}
