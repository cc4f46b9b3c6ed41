package cmdexec

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/task"
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

// environ is the environment of an attempt: retry's own, with the attempt's variables in place of those of an outer retry.
func (e *Executor) environ(t *task.Task, number int) []string {
	if e.inherited == nil {
		e.inherited = inherit(e.Env, e.Dir)
	}
	return append(slices.Clip(e.inherited), attemptEnv(t, number)...)
}

// inherit is what all attempts have of environ, each variable once.
func inherit(environ []string, dir string) (env []string) {
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
	if len(outer) > 0 {
		env = append(env, envOuterTasks+"="+strings.Join(outer, ","))
	}
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	if len(env) == 0 {
		return []string{} // exec.Cmd takes nil for all of our own
	}
	return (&exec.Cmd{Env: env}).Environ()
}

func attemptEnv(t *task.Task, number int) []string {
	env := []string{
		EnvTaskID + "=" + t.ID,
		EnvAttempt + "=" + strconv.Itoa(number),
		EnvMaxAttempts + "=" + strconv.Itoa(t.MaxAttempts()),
		EnvIdempotencyKey + "=" + t.IdempotencyKey,
	}
	if t.Last.Number > 0 && !t.Last.Outcome.IsCrash() {
		env = append(env, EnvLastExit+"="+strconv.Itoa(t.Last.Outcome.ExitCode()))
	}
	if deadline, ok := t.Deadline(); ok {
		env = append(env, EnvDeadline+"="+deadline.UTC().Format(milliseconds))
	}
	return env
}
