package cmdexec

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/task"
)

// The variables that tell a command about its attempt.
const (
	EnvTaskID         = proc.EnvTaskID
	EnvAttempt        = proc.EnvAttempt
	EnvMaxAttempts    = "RETRY_MAX_ATTEMPTS" // 0 = no limit
	EnvIdempotencyKey = "RETRY_IDEMPOTENCY_KEY"
	EnvLastExit       = "RETRY_LAST_EXIT" // of the previous attempt; unset in the first
	EnvDeadline       = "RETRY_DEADLINE"  // RFC 3339; unset without a budget
	EnvStatus         = "RETRY_STATUS"    // of the task; set for hooks only
)

// attemptVariables are set by retry alone: the values of an outer retry are removed.
var attemptVariables = []string{
	EnvTaskID, EnvAttempt, EnvMaxAttempts, EnvIdempotencyKey, EnvLastExit, EnvDeadline, EnvStatus, proc.EnvOuterTasks,
}

// OuterTasks returns the ids of the tasks that this process is a part of.
func OuterTasks(getenv func(string) string) []string {
	ids := getenv(EnvTaskID) + "," + getenv(proc.EnvOuterTasks)
	return strings.FieldsFunc(ids, func(r rune) bool { return r == ',' })
}

// milliseconds is RFC 3339 with the precision of the journal, so that a resumed attempt gets the same deadline.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// environment returns the environment of an attempt: that of retry, with the variables of the attempt. Each variable is
// there once.
func environment(own []string, dir string, t *task.Task, number int) []string {
	var env, outer []string
	for _, setting := range own {
		name, value, _ := strings.Cut(setting, "=")
		if (name == EnvTaskID || name == proc.EnvOuterTasks) && value != "" {
			outer = append(outer, value)
		}
		if !slices.Contains(attemptVariables, name) {
			env = append(env, setting)
		}
	}
	if len(outer) > 0 {
		env = append(env, proc.EnvOuterTasks+"="+strings.Join(outer, ","))
	}
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	env = append(env,
		EnvTaskID+"="+t.ID,
		EnvAttempt+"="+strconv.Itoa(number),
		EnvMaxAttempts+"="+strconv.Itoa(t.MaxAttempts()),
		EnvIdempotencyKey+"="+t.IdempotencyKey,
	)
	if t.Last.Number > 0 && !t.Last.Outcome.IsCrash() {
		env = append(env, EnvLastExit+"="+strconv.Itoa(t.Last.Outcome.ExitCode()))
	}
	if deadline, ok := t.Deadline(); ok {
		env = append(env, EnvDeadline+"="+deadline.UTC().Format(milliseconds))
	}
	return (&exec.Cmd{Env: env}).Environ() // which removes duplicates
}
