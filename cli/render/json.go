package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// TaskView is a task as it is shown, with what its row in the journal does not hold.
type TaskView struct {
	*task.Task
	Interrupted bool   // unfinished, and its owner is dead
	WorkerName  string // of the worker that carries it; empty for none
	Unattended  bool   // a worker may carry it, and none lives
	Paused      bool   // nothing goes to its host
}

// taskJSON is the stable form of a task; docs/json.md describes it.
type taskJSON struct {
	ID             string         `json:"id"`
	Name           *string        `json:"name"`
	Once           bool           `json:"once"`
	Kind           task.Kind      `json:"kind"`
	Status         task.Status    `json:"status"`
	Interrupted    bool           `json:"interrupted"`
	Reason         *string        `json:"reason"`
	Command        []string       `json:"command"`
	Directory      *string        `json:"directory"`
	Request        any            `json:"request"` // null for a command
	Policy         *task.Policy   `json:"policy"`
	IdempotencyKey string         `json:"idempotency_key"`
	Kept           []string       `json:"kept_environment"` // names; their values may be secret
	AttemptCount   int            `json:"attempt_count"`
	CreatedAt      *string        `json:"created_at"`
	RequeuedAt     *string        `json:"requeued_at"`
	FinishedAt     *string        `json:"finished_at"`
	NextAttemptAt  *string        `json:"next_attempt_at"`
	Damage         *string        `json:"damage"`
	Queue          *string        `json:"queue"`
	Worker         *string        `json:"worker"`
	Partition      *string        `json:"partition"`
	Tags           []string       `json:"tags"`
	Attempts       *[]attemptJSON `json:"attempts,omitempty"` // left out of lists
}

// TasksJSON writes a list of tasks, each as it comes: there may be more than fit into memory.
func TasksJSON(w io.Writer, tasks iter.Seq2[TaskView, error]) error {
	out := bufio.NewWriterSize(w, 1<<16)
	separator, end := "\n    ", "]\n}\n"
	_, _ = out.WriteString("{\n  \"tasks\": [") // an error stays for Flush
	for t, err := range tasks {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		text, err := marshal(taskToJSON(t), "    ")
		if err != nil {
			return err
		}
		if _, err := out.WriteString(separator + strings.TrimSuffix(text, "\n")); err != nil {
			return err
		}
		separator, end = ",\n    ", "\n  ]\n}\n"
	}
	_, _ = out.WriteString(end)
	return out.Flush()
}

// TaskJSON writes one task with its attempts.
func TaskJSON(w io.Writer, t TaskView, attempts []task.Attempt) error {
	list := make([]attemptJSON, len(attempts))
	for i, a := range attempts {
		list[i] = attemptToJSON(a)
	}
	tk := taskToJSON(t)
	tk.Attempts = &list
	return WriteJSON(w, tk)
}

// TaskLine writes one task with its attempts as JSON in one line.
func TaskLine(w io.Writer, t TaskView, attempts []task.Attempt) error {
	var pretty, line bytes.Buffer
	if err := TaskJSON(&pretty, t, attempts); err != nil {
		return err
	}
	if err := json.Compact(&line, pretty.Bytes()); err != nil {
		return err
	}
	_, err := w.Write(append(line.Bytes(), '\n'))
	return err
}

// WriteJSON writes a value as JSON that is safe for a terminal.
func WriteJSON(w io.Writer, v any) error {
	text, err := marshal(v, "")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// marshal also escapes DEL, C1 and bidirectional characters, which JSON allows and a terminal would act on. All lines
// but the first begin with the prefix.
func marshal(v any, prefix string) (string, error) {
	var txt bytes.Buffer
	encoder := json.NewEncoder(&txt)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	err := encoder.Encode(v)
	return text.EscapeJSON(txt.String()), err
}

func taskToJSON(t TaskView) taskJSON {
	tk := taskJSON{
		ID: t.ID, Name: present(t.Name), Once: t.Once, Kind: t.Kind, Status: t.Status, Interrupted: t.Interrupted,
		Reason: present(string(t.Reason)), Command: t.ShownCommand(), Directory: present(t.Directory), Policy: &t.Policy,
		IdempotencyKey: t.IdempotencyKey, Kept: keptNames(t.Task), AttemptCount: t.AttemptCount,
		CreatedAt: timestamp(t.CreatedAt), RequeuedAt: timestamp(t.RequeuedAt), FinishedAt: timestamp(t.FinishedAt),
		NextAttemptAt: timestamp(t.NextAttemptAt), Queue: queueName(t.Queue), Worker: present(t.WorkerName),
		Partition: present(t.Partition), Tags: append([]string{}, t.Tags...),
	}
	if t.Target != nil {
		tk.Request = t.Target.Details(true, t.Options.Mask).JSON
	}
	if lacksPolicy(t.Task) {
		tk.Policy = nil
	}
	if t.Damage != nil {
		tk.Damage = present(t.Damage.Error())
	}
	return tk
}

// queueName says who may carry a task, beside the process that made it.
func queueName(q task.Queue) *string {
	switch q {
	case task.QueueWorker:
		return new("worker")
	case task.QueueShared:
		return new("shared")
	}
	return nil
}

// keptNames are the names of the environment variables that are kept for a resume.
func keptNames(t *task.Task) []string {
	names := make([]string, len(t.Environment))
	for i, variable := range t.Environment {
		names[i], _, _ = strings.Cut(variable, "=")
	}
	return names
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
	if t.UTC().Year() > 9999 { // RFC 3339 has four digits
		t = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	}
	return new(t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// attemptJSON is the stable form of an attempt; docs/json.md describes it.
type attemptJSON struct {
	Number          int         `json:"number"`
	StartedAt       *string     `json:"started_at"`
	DurationMS      *int64      `json:"duration_ms"`
	Exit            *int        `json:"exit"`
	Signal          *string     `json:"signal"`
	HTTPStatus      *int        `json:"http_status"`
	GRPCStatus      string      `json:"grpc_status,omitempty"`
	Error           *string     `json:"error"`
	Message         *string     `json:"message"`
	Decision        *string     `json:"decision"`
	DelayMS         *int64      `json:"delay_ms"`
	Rule            *int        `json:"rule"`
	StdoutTail      *string     `json:"stdout_tail"`
	StderrTail      *string     `json:"stderr_tail"`
	RequestsWritten *int        `json:"requests_written"`
	Event           *string     `json:"event"`
	ServerDelayMS   *int64      `json:"server_delay_ms"`
	PhasesMS        *phasesJSON `json:"phases_ms"`
}

func attemptToJSON(a task.Attempt) attemptJSON {
	j := attemptJSON{
		Number: a.Number, StartedAt: timestamp(a.StartedAt), Decision: present(string(a.Decision.Verdict)),
		Signal: present(a.Outcome.Signal), Error: present(string(a.Outcome.Error)), Message: present(a.Outcome.Message),
		StdoutTail: present(a.Outcome.Stdout), StderrTail: present(a.Outcome.Stderr),
	}
	if !a.Outcome.IsCrash() { // neither has an attempt in flight an exit or a duration
		j.Exit, j.DurationMS = &a.Outcome.Exit, new(a.Outcome.Duration.Milliseconds())
	}
	if a.Decision.Verdict == task.VerdictRetry {
		j.DelayMS = new(a.Decision.Delay.Milliseconds())
		if a.Decision.Rule != 0 {
			j.Rule = &a.Decision.Rule
		}
	}
	return j.withReply(a.Outcome.Reply)
}
