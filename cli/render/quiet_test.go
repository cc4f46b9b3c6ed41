package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// -q is silent, but where a command's output is shown on failure alone: then it says why there may be none.
func TestQuiet(t *testing.T) {
	notFound := task.Outcome{Exit: 127, Error: task.ErrorNotFound, Message: "typo: command not found"}
	for name, test := range map[string]struct {
		output  task.OutputMode
		verdict task.Verdict
		want    string
	}{
		"failed, shown on failure":       {task.OutputFailure, task.VerdictFailed, "attempt 1/5: typo: command not found"},
		"exhausted, shown on failure":    {task.OutputFailure, task.VerdictExhausted, "gave up after 1 attempt"},
		"to be retried":                  {task.OutputFailure, task.VerdictRetry, ""},
		"succeeded":                      {task.OutputFailure, task.VerdictSucceeded, ""},
		"cancelled":                      {task.OutputFailure, task.VerdictCancelled, ""},
		"failed, its output passed on":   {"", task.VerdictFailed, ""},
		"failed, its output never shown": {task.OutputSuccess, task.VerdictExhausted, ""},
	} {
		var text strings.Builder
		q := NewQuiet(NewLines(&text, nil, nil, false))
		tk := &task.Task{Policy: task.DefaultPolicy(), Options: task.Options{Output: test.output}, AttemptCount: 1}
		a := task.Attempt{Number: 1, Outcome: notFound, Decision: task.Decision{Verdict: test.verdict}}
		tk.Status = test.verdict.Status()
		q.Started(tk)
		q.Warn(errors.New("a warning"))
		q.Say("something")
		q.Ended(tk, a)
		q.Finished(tk, runner.Result{Decision: a.Decision, Outcome: a.Outcome})
		if got := text.String(); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
