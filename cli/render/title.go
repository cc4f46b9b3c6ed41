package render

import "github.com/10f93571/retry/runner"

// Title is what a task does in one line: its command, or its request without the secrets in it.
func Title(t *runner.Task) string {
	if t.Request != nil {
		return Escape(t.Request.Shown())
	}
	return Command(t.Command)
}
