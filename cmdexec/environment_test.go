package cmdexec

import (
	"slices"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func TestEnviron(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 678_912_345, time.FixedZone("", 3600))
	last := func(o task.Outcome) task.Task {
		return task.Task{Last: task.Attempt{Number: 1, Outcome: o}}
	}
	others := []string{"RETRY_STATE_DIR=/s", "RETRY_ATTEMPTS=3", "EMPTY=", "ODD", "=X=y", "BYTES=\xff\n",
		"retry_attempt=x"}
	tests := []struct {
		name    string
		environ []string
		task    task.Task
		number  int
		want    []string
	}{
		{
			name: "first attempt", number: 1,
			task: task.Task{ID: "id", IdempotencyKey: "a=b", Policy: task.Policy{Attempts: 5}},
			want: []string{"RETRY_TASK_ID=id", "RETRY_ATTEMPT=1", "RETRY_MAX_ATTEMPTS=5", "RETRY_IDEMPOTENCY_KEY=a=b"},
		},
		{
			name: "no limit", number: 12,
			want: []string{"RETRY_TASK_ID=", "RETRY_ATTEMPT=12", "RETRY_MAX_ATTEMPTS=0", "RETRY_IDEMPOTENCY_KEY="},
		},
		{
			name: "budget", number: 1,
			task: task.Task{History: task.History{Began: created}, Policy: task.Policy{Budget: time.Hour}},
			want: withOwn(1, "RETRY_DEADLINE=2026-01-02T03:04:05.678Z"),
		},
		{
			name: "exit before", task: last(task.Outcome{Exit: 75}), number: 2,
			want: withOwn(2, "RETRY_LAST_EXIT=75"),
		},
		{name: "success before", task: last(task.Outcome{}), number: 2, want: withOwn(2, "RETRY_LAST_EXIT=0")},
		{
			name: "signal before", task: last(task.Outcome{Exit: 137, Signal: "SIGKILL"}), number: 2,
			want: withOwn(2, "RETRY_LAST_EXIT=137"),
		},
		{
			name: "timeout before", task: last(task.Outcome{Error: task.ErrorTimeout}), number: 2,
			want: withOwn(2, "RETRY_LAST_EXIT=124"),
		},
		{name: "crash before", task: last(task.Crashed()), number: 2, want: withOwn(2)},
		{
			name: "those of an outer retry",
			environ: []string{
				"A=1", "RETRY_TASK_ID=outer", "RETRY_ATTEMPT=9", "RETRY_MAX_ATTEMPTS=9", "B=2",
				"RETRY_IDEMPOTENCY_KEY=outer",
				"RETRY_LAST_EXIT=9", "RETRY_DEADLINE=2026-01-02T03:04:05Z", "RETRY_ATTEMPT=8",
				"RETRY_OUTER_TASKS=outermost:2", "RETRY_STATUS=FAILED",
			},
			number: 1,
			want:   slices.Concat([]string{"A=1", "B=2", "RETRY_OUTER_TASKS=outer:8,outermost:2"}, withOwn(1)),
		},
		{
			name: "the last one of each", environ: []string{"A=1", "B=2", "A=3"}, number: 1,
			want: slices.Concat([]string{"B=2", "A=3"}, withOwn(1)),
		},
		{
			name: "others stay as they are", environ: others, number: 1, want: slices.Concat(others, withOwn(1)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.environ)
			got := slices.Concat(inherited(tt.environ, ""), attemptEnvironment(&tt.task, tt.number))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if !slices.Equal(tt.environ, before) {
				t.Errorf("the environment of retry: got %q, want %q", tt.environ, before)
			}
		})
	}
}

// withOwn returns the variables of a task without an id, a key and limits, and more of them.
func withOwn(number int, more ...string) []string {
	attempt := map[int]string{1: "RETRY_ATTEMPT=1", 2: "RETRY_ATTEMPT=2"}[number]
	return append([]string{"RETRY_TASK_ID=", attempt, "RETRY_MAX_ATTEMPTS=0", "RETRY_IDEMPOTENCY_KEY="}, more...)
}

func TestOuterTasks(t *testing.T) {
	environment := map[string]string{"RETRY_TASK_ID": "inner", "RETRY_OUTER_TASKS": "outer:8,outermost"} // of an older one
	got := OuterTasks(func(name string) string { return environment[name] })
	if want := []string{"inner", "outer", "outermost"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := OuterTasks(func(string) string { return "" }); len(got) > 0 {
		t.Errorf("outside of any task: got %q, want none", got)
	}
}
