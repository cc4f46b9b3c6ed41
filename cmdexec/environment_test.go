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
	tests := []struct {
		name    string
		environ []string
		task    task.Task
		number  int
		want    []string
	}{
		{
			"first attempt", nil, task.Task{ID: "id", IdempotencyKey: "a=b", Policy: task.Policy{Attempts: 5}}, 1,
			[]string{"RETRY_TASK_ID=id", "RETRY_ATTEMPT=1", "RETRY_MAX_ATTEMPTS=5", "RETRY_IDEMPOTENCY_KEY=a=b"},
		},
		{
			"no limit", nil, task.Task{}, 12,
			[]string{"RETRY_TASK_ID=", "RETRY_ATTEMPT=12", "RETRY_MAX_ATTEMPTS=0", "RETRY_IDEMPOTENCY_KEY="},
		},
		{
			"budget", nil, task.Task{History: task.History{Began: created}, Policy: task.Policy{Budget: time.Hour}}, 1,
			withOwn(1, "RETRY_DEADLINE=2026-01-02T03:04:05.678Z"),
		},
		{"exit before", nil, last(task.Outcome{Exit: 75}), 2, withOwn(2, "RETRY_LAST_EXIT=75")},
		{"success before", nil, last(task.Outcome{}), 2, withOwn(2, "RETRY_LAST_EXIT=0")},
		{"signal before", nil, last(task.Outcome{Exit: 137, Signal: "SIGKILL"}), 2, withOwn(2, "RETRY_LAST_EXIT=137")},
		{"timeout before", nil, last(task.Outcome{Error: task.ErrorTimeout}), 2, withOwn(2, "RETRY_LAST_EXIT=124")},
		{"crash before", nil, last(task.Crashed()), 2, withOwn(2)},
		{
			"those of an outer retry",
			[]string{
				"A=1", "RETRY_TASK_ID=outer", "RETRY_ATTEMPT=9", "RETRY_MAX_ATTEMPTS=9", "B=2", "RETRY_IDEMPOTENCY_KEY=outer",
				"RETRY_LAST_EXIT=9", "RETRY_DEADLINE=2026-01-02T03:04:05Z", "RETRY_ATTEMPT=8",
				"RETRY_OUTER_TASKS=outermost", "RETRY_STATUS=FAILED",
			},
			task.Task{}, 1, slices.Concat([]string{"A=1", "B=2", "RETRY_OUTER_TASKS=outer,outermost"}, withOwn(1)),
		},
		{
			"the last one of each", []string{"A=1", "B=2", "A=3"}, task.Task{}, 1, slices.Concat([]string{"B=2", "A=3"}, withOwn(1)),
		},
		{
			"others stay as they are",
			[]string{"RETRY_STATE_DIR=/s", "RETRY_ATTEMPTS=3", "EMPTY=", "ODD", "=X=y", "BYTES=\xff\n", "retry_attempt=x"},
			task.Task{}, 1,
			slices.Concat([]string{"RETRY_STATE_DIR=/s", "RETRY_ATTEMPTS=3", "EMPTY=", "ODD", "=X=y", "BYTES=\xff\n", "retry_attempt=x"}, withOwn(1)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.environ)
			if got := environment(tt.environ, "", &tt.task, tt.number); !slices.Equal(got, tt.want) {
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
