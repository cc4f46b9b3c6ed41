package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/10f93571/retry/runner"
)

// -q is silent, but where a command's output is shown on failure alone: then it says why there may be none.
func TestQuiet(t *testing.T) {
	notFound := runner.Outcome{Exit: 127, Error: runner.ErrorNotFound, Message: "typo: command not found"}
	for name, test := range map[string]struct {
		output  runner.OutputMode
		verdict runner.Verdict
		want    string
	}{
		"failed, shown on failure":       {runner.OutputFailure, runner.VerdictFailed, "attempt 1/5: typo: command not found"},
		"exhausted, shown on failure":    {runner.OutputFailure, runner.VerdictExhausted, "gave up after 1 attempt"},
		"to be retried":                  {runner.OutputFailure, runner.VerdictRetry, ""},
		"succeeded":                      {runner.OutputFailure, runner.VerdictSucceeded, ""},
		"cancelled":                      {runner.OutputFailure, runner.VerdictCancelled, ""},
		"failed, its output passed on":   {"", runner.VerdictFailed, ""},
		"failed, its output never shown": {runner.OutputSuccess, runner.VerdictExhausted, ""},
	} {
		var text strings.Builder
		q := NewQuiet(NewLines(&text, nil, nil, false))
		task := &runner.Task{Policy: runner.DefaultPolicy(), Options: runner.Options{Output: test.output}, AttemptCount: 1}
		a := runner.Attempt{Number: 1, Outcome: notFound, Decision: runner.Decision{Verdict: test.verdict}}
		task.Status = test.verdict.Status()
		q.Started(task)
		q.Warn(errors.New("a warning"))
		q.Say("something")
		q.Ended(task, a)
		q.Finished(task, runner.Result{Decision: a.Decision, Outcome: a.Outcome})
		if got := text.String(); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
