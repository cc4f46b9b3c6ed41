package render

import (
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Title is what a task does in one line: its command, or its request with the secrets masked.
func Title(t *task.Task) string { return titleUpTo(t, maxTitle) }

// maxTitle is the limit of a title that is not shortened.
const maxTitle = 1 << 20

// titleUpTo writes the first characters of a title, at most as many as are shown.
func titleUpTo(t *task.Task, most int) string {
	switch {
	case t.Target != nil:
		return text.Escape(text.Shorten(t.Target.Title(), most))
	case t.Kind != task.KindCommand:
		return "a request that cannot be read"
	}
	return commandUpTo(t.Command, most)
}

// targetFacts are the lines about what a task sends; none for a command.
func targetFacts(t *task.Task) [][2]string {
	if t.Target == nil {
		return nil
	}
	rows := t.Target.Details(t.Status.Finished()).Rows
	for i := range rows {
		rows[i][1] = wholeLine(rows[i][1])
	}
	return rows
}

// optionsOf writes the options of a task. For the captured output it uses the values of retry http.
func optionsOf(t *task.Task) string {
	o := t.Options
	if t.Kind != task.KindCommand {
		o.Capture = map[task.CaptureMode]task.CaptureMode{"": "none", task.CaptureStderr: "", task.CaptureBoth: "all"}[o.Capture]
	}
	return Options(&o)
}

// keyOf is the task's idempotency key, and how it is sent.
func keyOf(t *task.Task) string {
	key := brief(t.IdempotencyKey)
	if t.Target == nil || key == "" {
		return key
	}
	return key + " (" + t.Target.Details(t.Status.Finished()).Key + ")"
}
