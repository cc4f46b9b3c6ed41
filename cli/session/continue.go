package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// amend has an interrupted task go on as the line says that continues it, and tells that. It reports whether there is
// anything to store: what is typed holds from now on, also for a later resume.
func (w *Wrapper) amend(interrupted, t *task.Task, typed []string, lines render.Observer) (amended bool, err error) {
	policy := interrupted.Policy
	if w.Deadline != nil && policy.Deadline { // it replaces the earlier one
		policy.Budget, policy.Deadline = 0, false
	}
	err = policies.Overlay(&policy, &w.PolicyFlags, interrupted.History.Began)
	if w.Policy != nil {
		policy, err = w.choice.Resolve(interrupted.History.Began)
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", errName, err)
	}
	before, _ := json.Marshal(interrupted.Policy) // conditions cannot be compared
	after, err := json.Marshal(policy)
	if err != nil {
		return false, err
	}
	announce(interrupted, t, typed, lines)
	if amended = !bytes.Equal(before, after); amended {
		interrupted.History.Final = false // the latest delay was shortened for another budget
		said := render.Policy(&policy)
		if policy.KillAfter != interrupted.Policy.KillAfter {
			said += ", KILL after " + text.Duration(policy.KillAfter)
		}
		lines.Say("from now on, as typed here: " + said)
	}
	options := w.continuedOptions(interrupted.Options, typed)
	options.Capture = captureFor(interrupted.Kind, options.Capture, &policy)
	kept := keptOver(interrupted.Environment, t.Environment)
	amended = amended || options != interrupted.Options || !slices.Equal(kept, interrupted.Environment) ||
		w.Once && !interrupted.Once // its success is relied on from now on
	interrupted.Policy, interrupted.Options, interrupted.Environment = policy, options, kept
	interrupted.Once = interrupted.Once || w.Once
	return amended, nil
}

// continuedOptions returns the options of an interrupted task as they are on the line that continues it: what the line
// says holds from now on.
func (w *Wrapper) continuedOptions(kept task.Options, typed []string) task.Options {
	said := &w.options
	// How output is passed on belongs to the line alone, and so does whether its attempts share a stdin.
	kept.Output, kept.OutputLimit = said.Output, said.OutputLimit
	if kept.Stdin == task.StdinRest { // of the stdin of a process that has ended
		kept.Stdin = said.Stdin
	}
	if slices.Contains(typed, "capture") {
		kept.Capture = said.Capture
	}
	kept.OnStart, kept.OnRetry = cmp.Or(said.OnStart, kept.OnStart), cmp.Or(said.OnRetry, kept.OnRetry)
	kept.OnSuccess, kept.OnFailure = cmp.Or(said.OnSuccess, kept.OnSuccess), cmp.Or(said.OnFailure, kept.OnFailure)
	kept.Ping, kept.HookTimeout = cmp.Or(said.Ping, kept.Ping), cmp.Or(said.HookTimeout, kept.HookTimeout)
	kept.Report = cmp.Or(said.Report, kept.Report)
	kept.Signal, kept.Seed = cmp.Or(said.Signal, kept.Signal), cmp.Or(said.Seed, kept.Seed)
	switch { // what was secret in the earlier attempts is secret still
	case kept.Mask == "":
		kept.Mask = said.Mask
	case said.Mask != "" && !strings.Contains(kept.Mask, said.Mask):
		kept.Mask += "|" + said.Mask
	}
	return kept
}

// captureFor returns what is captured of a task: a command's output as far as its conditions look at it, too.
func captureFor(kind task.Kind, asked task.CaptureMode, policy *task.Policy) task.CaptureMode {
	if looks := policy.Captures(); looks != task.CaptureNone && kind == task.KindCommand {
		return asked.And(looks)
	}
	return asked
}

// keptOver returns what was kept of an environment, with what a line that continues the task keeps of its own.
func keptOver(kept, own []string) []string {
	nameOf := func(variable string) string { // one that was not set is its name alone
		name, _, _ := strings.Cut(variable, "=")
		return name
	}
	return append(slices.DeleteFunc(slices.Clone(kept), func(old string) bool {
		return slices.ContainsFunc(own, func(new string) bool { return nameOf(new) == nameOf(old) })
	}), own...)
}

// announce says that an interrupted task is continued, and warns of what was typed in vain.
func announce(interrupted, asked *task.Task, typed []string, lines render.Observer) {
	why := "interrupted"
	switch {
	case interrupted.Requeued():
		why = "requeued"
	case interrupted.Reason == task.ReasonDeferred:
		why = "deferred"
	}
	lines.Say(fmt.Sprintf("continues %s, which was %s after %s",
		render.ShortID(interrupted.ID), why, text.Count(interrupted.AttemptCount, "attempt")))
	var vain []string
	for flag, differs := range map[string]bool{
		"stdin":           interrupted.Options.Stdin != asked.Options.Stdin && asked.Options.Stdin != task.StdinNull,
		"idempotency-ttl": asked.Target != nil && interrupted.Target.KeyLifetime() != asked.Target.KeyLifetime(),
		"max-retry-after": asked.Target != nil && interrupted.Target.MaxServerDelay() != asked.Target.MaxServerDelay(),
	} {
		if differs && slices.Contains(typed, flag) {
			vain = append(vain, flag)
		}
	}
	if slices.Sort(vain); len(vain) > 0 {
		lines.Warn(fmt.Errorf("it keeps what it began with; without effect here: --%s"+
			"\nhint: --fresh cancels it and begins anew", strings.Join(vain, ", --")))
	}
}
