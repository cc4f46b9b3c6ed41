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
)

// milliseconds is RFC 3339 as precise as the journal, so that a resumed attempt finds the same deadline.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

var ownVariables = []string{EnvTaskID, EnvAttempt, EnvMaxAttempts, EnvIdempotencyKey, EnvLastExit, EnvDeadline, EnvStatus}

// childEnv returns environ with the attempt's variables in place of those of an outer retry.
func childEnv(environ []string, t *runner.Task, number int) []string {
	env := make([]string, 0, len(environ)+len(ownVariables))
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(ownVariables, name) {
			env = append(env, kv)
		}
	}
	env = append(env,
		EnvTaskID+"="+t.ID,
		EnvAttempt+"="+strconv.Itoa(number),
		EnvMaxAttempts+"="+strconv.Itoa(t.Policy.Attempts),
		EnvIdempotencyKey+"="+t.IdempotencyKey)
	if t.Last.Number > 0 && !t.Last.Outcome.IsCrash() {
		env = append(env, EnvLastExit+"="+strconv.Itoa(t.Last.Outcome.ExitCode()))
	}
	if deadline, ok := t.Deadline(); ok {
		env = append(env, EnvDeadline+"="+deadline.UTC().Format(milliseconds))
	}
	return env
}
