package cmdexec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/runner"
)

// The variables that tell a command about its attempt.
const (
	EnvTaskID         = "RETRY_TASK_ID"
	EnvAttempt        = "RETRY_ATTEMPT"
	EnvMaxAttempts    = "RETRY_MAX_ATTEMPTS" // 0 = no limit
	EnvIdempotencyKey = "RETRY_IDEMPOTENCY_KEY"
	EnvLastExit       = "RETRY_LAST_EXIT" // of the attempt before; unset in the first
	EnvDeadline       = "RETRY_DEADLINE"  // RFC 3339; unset without a budget

	// envOuterTasks lists the tasks that a nested retry runs in, with commas, so that what it starts can be found for each of them.
	envOuterTasks = "RETRY_OUTER_TASKS"
)

// OuterTasks returns the ids of the tasks that this process is a part of.
func OuterTasks(getenv func(string) string) []string {
	return strings.FieldsFunc(getenv(EnvTaskID)+","+getenv(envOuterTasks), func(r rune) bool { return r == ',' })
}

// milliseconds is RFC 3339 as precise as the journal, so that a resumed attempt finds the same deadline.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

var ownVariables = []string{EnvTaskID, EnvAttempt, EnvMaxAttempts, EnvIdempotencyKey, EnvLastExit, EnvDeadline, EnvStatus, envOuterTasks}

// childEnv returns environ with the attempt's variables in place of those of an outer retry.
func childEnv(environ []string, t *runner.Task, number int) []string {
	env := make([]string, 0, len(environ)+len(ownVariables))
	var outer []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if (name == EnvTaskID || name == envOuterTasks) && value != "" {
			outer = append(outer, value)
		}
		if !slices.Contains(ownVariables, name) {
			env = append(env, kv)
		}
	}
	env = append(env,
		EnvTaskID+"="+t.ID,
		EnvAttempt+"="+strconv.Itoa(number),
		EnvMaxAttempts+"="+strconv.Itoa(t.MaxAttempts()),
		EnvIdempotencyKey+"="+t.IdempotencyKey)
	if len(outer) > 0 {
		env = append(env, envOuterTasks+"="+strings.Join(outer, ","))
	}
	if t.Last.Number > 0 && !t.Last.Outcome.IsCrash() {
		env = append(env, EnvLastExit+"="+strconv.Itoa(t.Last.Outcome.ExitCode()))
	}
	if deadline, ok := t.Deadline(); ok {
		env = append(env, EnvDeadline+"="+deadline.UTC().Format(milliseconds))
	}
	return env
}
