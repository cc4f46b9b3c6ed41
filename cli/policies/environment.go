package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/internal/text"
)

// variables are those that are no flag of a policy. The last ones are what a command finds in its environment.
var variables = []string{
	"RETRY_STATE_DIR", "RETRY_CONFIG", "RETRY_RETENTION", "RETRY_OUTER_TASKS",
	"RETRY_TASK_ID", "RETRY_ATTEMPT", "RETRY_MAX_ATTEMPTS", "RETRY_IDEMPOTENCY_KEY", "RETRY_LAST_EXIT", "RETRY_STATUS",
}

// WarnOfVariables tells in one warning of RETRY_… variables that nobody knows. A nested retry leaves that to the outer
// one.
func WarnOfVariables(environ []string, warn func(error)) {
	var unknown []string
	for _, setting := range environ {
		if !strings.HasPrefix(setting, "RETRY_") {
			continue
		}
		name, value, _ := strings.Cut(setting, "=")
		known := func(k Key) bool { return Variable(k.Name) == name }
		if name == proc.EnvTaskID && value != "" {
			return
		}
		if !slices.Contains(variables, name) && !slices.ContainsFunc(Keys(), known) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return
	}
	known := slices.Clone(variables)
	for _, k := range Keys() {
		known = append(known, Variable(k.Name))
	}
	near := hintFor(unknown[0], known, "did you mean %s?", "unset it, or give the flag itself")
	warn(fmt.Errorf("unknown in the environment: %s\nhint: %s", text.Escape(strings.Join(unknown, ", ")), near))
}
