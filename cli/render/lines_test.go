package render

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func TestSummary(t *testing.T) {
	exit7 := task.Outcome{Exit: 7}
	tests := []struct {
		name   string
		result runner.Result
		task   func(*task.Task)
		want   string
	}{
		{"first try", runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}},
			func(t *task.Task) { t.AttemptCount = 1 }, ""},
		{"rescued", runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}}, nil,
			"succeeded in attempt 5, after"},
		{"exhausted", runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts},
			Outcome: exit7}, nil, "gave up after 5 attempts in"},
		{"budget", runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget},
			Outcome: exit7},
			func(t *task.Task) { t.Policy.Budget = time.Minute },
			"no time is left in the budget of 1m, exit 7 (retry status 5b9a39db)"},
		{"crashes", runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonCrashes},
			Outcome: task.Crashed()}, nil, "3 in a row"},
		{"failed", runner.Result{Decision: task.Decision{Verdict: task.VerdictFailed, Why: "is in --stop-on 7\x1b"},
			Outcome: exit7}, nil, `not retried: exit 7 is in --stop-on 7\x1b`},
		{"stdin", runner.Result{Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonStdin},
			Outcome: exit7}, nil, "not retried after exit 7: what attempt 5 has read from stdin cannot be read again"},
		{"stdin that was taken between two attempts", runner.Result{
			Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonStdin},
			Outcome:  task.Outcome{Exit: 7, Error: task.ErrorStart, StdinRead: true, Message: "the file was cut"},
		}, nil, "not retried: the file was cut"},
		{"stdin of one of several successes", runner.Result{
			Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonStdin, Success: true}},
			func(t *task.Task) { t.Policy.Consecutive, t.History.Successes = 3, 2 },
			"not run again after ok (2 of 3 successes in a row): what attempt 5 has read from stdin cannot be read again"},
		{"too few successes", runner.Result{
			Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts, Success: true}},
			func(t *task.Task) { t.Policy.Consecutive, t.History.Successes = 3, 2 },
			": ok (2 of 3 successes in a row)"},
		{"INT", runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGINT}, nil,
			"cancelled by SIGINT"},
		{"retry cancel", runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGTERM},
			nil, "cancelled by another process"},
		{"TERM", runner.Result{Decision: task.Decision{Verdict: task.VerdictInterrupted}, Signal: syscall.SIGTERM}, nil,
			"interrupted by SIGTERM; to go on: retry resume 5b9a39db"},
		{"TERM without a journal", runner.Result{Decision: task.Decision{Verdict: task.VerdictInterrupted},
			Signal: syscall.SIGTERM},
			func(t *task.Task) { t.Number = 0 }, "interrupted by SIGTERM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tk := view(nil).Task
			tk.Number = 1
			if tt.task != nil {
				tt.task(tk)
			}
			got := Summary(tk, tt.result)
			if !strings.Contains(got, tt.want) || (tt.want == "" && got != "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tk.Number == 0 && strings.Contains(got, "retry resume") {
				t.Errorf("got %q, want no command for a journal that there is not", got)
			}
		})
	}
}

// What a command's name brings along reaches stderr escaped.
func TestLinesAreEscaped(t *testing.T) {
	var b strings.Builder
	l := NewLines(&b, nil, false)
	tk := view(nil).Task
	l.Ended(tk, task.Attempt{Outcome: task.Outcome{Error: task.ErrorNotFound, Message: "\x1b[2J: command not found"},
		Decision: task.Decision{Verdict: task.VerdictFailed}})
	l.Warn(errors.New("x"))
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("got %q, want it escaped", b.String())
	}
}

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
		q := NewQuiet(&text)
		tk := &task.Task{Policy: task.DefaultPolicy(), Options: task.Options{Output: test.output}, AttemptCount: 1}
		a := task.Attempt{Number: 1, Outcome: notFound, Decision: task.Decision{Verdict: test.verdict}}
		tk.Status = test.verdict.Status()
		q.Started(tk)
		q.Warn(errors.New("a warning"))
		q.Say("something")
		q.Ended(tk, a)
		q.Finished(tk, runner.Result{Decision: a.Decision, Outcome: a.Outcome})
		if got := text.String(); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestALossIsNotHiddenByQuiet(t *testing.T) {
	for _, tt := range []struct {
		name  string
		quiet bool
		err   error
		want  string
	}{
		{name: "quiet, a warning", quiet: true, err: errors.New("x"), want: ""},
		{name: "quiet, a loss", quiet: true, err: runner.Loss{Err: errors.New("x")}, want: "retry: warning: x\n"},
		{name: "a warning", err: errors.New("x"), want: "retry: warning: x\n"},
		{name: "quiet, a new loss", quiet: true, err: runner.Loss{Err: errors.New("x"), New: true}, want: "retry: warning: x\n"},
		{name: "a new loss", err: runner.Loss{Err: errors.New("x"), New: true}, want: "retry: warning: x\n"},
		{name: "a loss, which was told before", err: runner.Loss{Err: errors.New("x")}, want: ""},
	} {
		var got strings.Builder
		o := NewLines(&got, nil, false)
		if tt.quiet {
			o = NewQuiet(&got)
		}
		if o.Warn(tt.err); got.String() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got.String(), tt.want)
		}
	}
}
