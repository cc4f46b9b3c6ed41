package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// announce says that an interrupted task is continued in place of a new one, and warns of what was asked for in vain: a task has
// its policy and options for life.
func announce(interrupted, asked *task.Task, lines render.Observer) {
	why := "interrupted"
	switch {
	case interrupted.Requeued():
		why = "requeued"
	case interrupted.Reason == task.ReasonDeferred:
		why = "deferred"
	}
	lines.Say(fmt.Sprintf("continues %s, which was %s after %s", render.ShortID(interrupted.ID), why, text.Count(interrupted.AttemptCount, "attempt")))
	if kept := unlike(interrupted, asked); len(kept) > 0 {
		lines.Warn(errors.New("it keeps " + strings.Join(kept, ", ") + ": what this command line says of that is for another task\nhint: --fresh cancels it and begins anew"))
	}
}

// unlike lists what is not as asked for.
func unlike(interrupted, asked *task.Task) (kept []string) {
	a, b := interrupted.Policy, asked.Policy
	a.Budget, b.Budget = 0, 0 // a deadline by the clock is another budget each time
	if render.Policy(&a) != render.Policy(&b) {
		kept = append(kept, "its policy ("+render.Policy(&interrupted.Policy)+")")
	}
	if render.Options(&interrupted.Options) != render.Options(&asked.Options) {
		kept = append(kept, "its options")
	}
	return kept
}
