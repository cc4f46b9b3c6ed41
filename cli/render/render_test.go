package render

import (
	"errors"
	"iter"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

func TestRelative(t *testing.T) {
	tests := []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, ""}, {now, "now"}, {now.Add(400 * time.Millisecond), "now"}, {now.Add(3 * time.Minute), "in 3m"}, {now.Add(-2 * time.Hour), "2h ago"},
	}
	for _, tt := range tests {
		if got := relative(tt.t, now); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.t, got, tt.want)
		}
	}
}

func view(change func(*TaskView)) TaskView {
	t := TaskView{Task: &task.Task{
		ID: "01a1fb79-5735-7565-b3a1-977a5b9a39db", Kind: task.KindCommand, Command: []string{"sh", "-c", "exit 7"},
		Directory: "/srv", Policy: task.DefaultPolicy(), IdempotencyKey: "key", CreatedAt: now.Add(-time.Minute),
		Status: task.Exhausted, Reason: task.ReasonAttempts, AttemptCount: 5, FinishedAt: now,
		Last: task.Attempt{Number: 5, Outcome: task.Outcome{Exit: 7}, Decision: task.Decision{Verdict: task.VerdictExhausted}},
	}}
	if change != nil {
		change(&t)
	}
	return t
}

// all yields views as the journal does.
func all(views ...TaskView) iter.Seq2[TaskView, error] {
	return func(yield func(TaskView, error) bool) {
		for _, v := range views {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func lines(t *testing.T, draw func(*strings.Builder) error) []string {
	t.Helper()
	var b strings.Builder
	if err := draw(&b); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestTasks(t *testing.T) {
	waiting := func(v *TaskView) {
		v.Status, v.Reason, v.AttemptCount, v.NextAttemptAt, v.Policy.Attempts = task.Pending, "", 1, now.Add(90*time.Second), 0
	}
	running := func(v *TaskView) {
		v.Status, v.Last = task.InFlight, task.Attempt{Number: 5, Outcome: task.Outcome{Exit: task.NoExit}}
	}
	tasks := []TaskView{
		view(nil), view(waiting), view(running),
		view(func(v *TaskView) { waiting(v); v.Interrupted = true }),
		view(func(v *TaskView) { running(v); v.Interrupted = true }),
		view(func(v *TaskView) { v.Last.Outcome.Signal = "SIGKILL"; v.Command = []string{"a\nb"} }),
		view(func(v *TaskView) { v.Name, v.CreatedAt = "nightly\x1b", now.Add(time.Hour) }), // made before the clock went back
		view(nil), // one too many
	}
	got := lines(t, func(b *strings.Builder) error {
		return Tasks(b, Screen{}, all(tasks...), Table{Limit: 7, More: "… and older ones"}, now)
	})
	want := []string{
		"ID        STATUS       ATTEMPTS  LAST        NEXT       AGE  COMMAND",
		"5b9a39db  EXHAUSTED    5/5       exit 7      -          1m   sh -c 'exit 7'",
		"5b9a39db  PENDING      1         exit 7      in 1m30s   1m   sh -c 'exit 7'",
		"5b9a39db  IN_FLIGHT    5/5       running     -          1m   sh -c 'exit 7'",
		"5b9a39db  INTERRUPTED  1         exit 7      on resume  1m   sh -c 'exit 7'",
		"5b9a39db  INTERRUPTED  5/5       no outcome  on resume  1m   sh -c 'exit 7'",
		`5b9a39db  EXHAUSTED    5/5       SIGKILL     -          1m   $'a\nb'`,
		`5b9a39db  EXHAUSTED    5/5       exit 7      -          0s   nightly\x1b: sh -c 'exit 7'`,
		"… and older ones",
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// On a terminal no line is wider than it, so that none wraps.
func TestTasksFitTheScreen(t *testing.T) {
	long := view(func(v *TaskView) { v.Command = []string{"echo", strings.Repeat("日本", 100)} })
	for _, line := range lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{Width: 60}, all(long), Table{}, now) }) {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	piped := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{}, all(long), Table{}, now) })
	if !strings.HasSuffix(piped[1], strings.Repeat("日本", 100)+"'") {
		t.Errorf("cut in a pipe: %s", piped[1])
	}
}

func TestColor(t *testing.T) {
	colored := lines(t, func(b *strings.Builder) error {
		return Tasks(b, Screen{Width: 99, Color: true}, all(view(nil)), Table{}, now)
	})
	if !strings.Contains(colored[1], "\x1b[31mEXHAUSTED\x1b[") {
		t.Errorf("no red in %q", colored[1])
	}
	plain := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{Width: 99}, all(view(nil)), Table{}, now) })
	if strings.Contains(plain[1], "\x1b") {
		t.Errorf("an escape in %q", plain[1])
	}
}

func TestSummary(t *testing.T) {
	exit7 := task.Outcome{Exit: 7}
	tests := []struct {
		name   string
		result runner.Result
		task   func(*task.Task)
		want   string
	}{
		{"first try", runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}}, func(t *task.Task) { t.AttemptCount = 1 }, ""},
		{"rescued", runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}}, nil, "succeeded in attempt 5, after"},
		{"exhausted", runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts}, Outcome: exit7}, nil, "gave up after 5 attempts in"},
		{"budget", runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}, Outcome: exit7},
			func(t *task.Task) { t.Policy.Budget = time.Minute }, "no time is left in the budget of 1m, exit 7 (retry status 5b9a39db)"},
		{"crashes", runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonCrashes}, Outcome: task.Crashed()}, nil, "3 in a row"},
		{"failed", runner.Result{Decision: task.Decision{Verdict: task.VerdictFailed}, Outcome: exit7}, nil, "not retried: exit 7 is not eligible"},
		{"INT", runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGINT}, nil, "cancelled by SIGINT"},
		{"retry cancel", runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGTERM}, nil, "cancelled by another process"},
		{"TERM", runner.Result{Decision: task.Decision{Verdict: task.VerdictInterrupted}, Signal: syscall.SIGTERM}, nil, "interrupted by SIGTERM; to go on: retry resume 5b9a39db"},
		{"TERM without a journal", runner.Result{Decision: task.Decision{Verdict: task.VerdictInterrupted}, Signal: syscall.SIGTERM},
			func(t *task.Task) { t.Number = 0 }, "interrupted by SIGTERM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tk := view(nil).Task
			tk.Number = 1
			if tt.task != nil {
				tt.task(tk)
			}
			got := summary(tk, tt.result)
			if !strings.Contains(got, tt.want) || (tt.want == "" && got != "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tk.Number == 0 && strings.Contains(got, "retry resume") {
				t.Errorf("%q points to a journal that there is not", got)
			}
		})
	}
}

// What a command's name brings along reaches stderr escaped.
func TestLinesAreEscaped(t *testing.T) {
	var b strings.Builder
	l := &Lines{w: &b}
	tk := view(nil).Task
	l.Ended(tk, task.Attempt{Outcome: task.Outcome{Error: task.ErrorNotFound, Message: "\x1b[2J: command not found"}, Decision: task.Decision{Verdict: task.VerdictFailed}})
	l.Warn(errors.New("x"))
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("raw: %q", b.String())
	}
}

func TestScheduleSaturates(t *testing.T) {
	p := task.DefaultPolicy()
	p.Attempts = 2000
	p.Backoff, _ = backoff.Parse("constant:365d", "none")
	s := NewSchedule(&p)
	last := s.Retries[len(s.Retries)-1]
	if len(s.Retries) != maxRows || last.TotalMost < s.Retries[0].TotalMost {
		t.Errorf("%d rows, the last %+v", len(s.Retries), last)
	}
}
