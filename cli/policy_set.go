package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type policySetCommand struct {
	flags.PolicyFlags
	flags.ConfigFlag
	flags.StateFlag
	Replace bool   `help:"Begin with the built-in default, whatever the policy is now."`
	Name    string `arg:"" optional:"" help:"The policy."`
}

const policySetUsage = `Keep a policy in the journal. Of a policy that exists it changes what the flags name; a new one begins with the built-in default. With -p
it begins with that policy, with --replace with the default. The environment is no part of it. Tasks that exist keep their policy.

Usage:
  retry policy set NAME [flags]

Examples:
  retry policy set deploy -n 8 -b exp:2s..2m -B 30m --stop-on 2
  retry policy set default -p aws -n 10
`

func (c *policySetCommand) Run(p *Process) (int, error) {
	if c.Deadline != nil {
		return 0, errors.New("--deadline is a time, and a policy is for any time" +
			"\nhint: give --budget, or --deadline with the run")
	}
	if err := policies.CheckName(c.Name); err != nil {
		return 0, text.WithHint(err, "retry policy set NAME")
	}
	choice, err := policies.Choose(&c.PolicyFlags, &c.ConfigFlag, withoutPolicy(p.Getenv), p.warn)
	switch {
	case err != nil && (choice == nil || c.Policy != nil):
		return 0, err
	case err != nil:
		p.warn(err)
	}
	if c.Policy == nil { // a policy of the config file is no part of that of the journal, which it hides
		choice.Name, choice.Settled = c.Name, c.Replace
		if choice.Base = policies.Builtin(c.Name); choice.Base == nil || c.Replace {
			choice.Base = policies.Builtin(task.DefaultPolicyName)
		}
	}
	if err := session.AskReader(context.Background(), &p.Host, choice, c.State, p.warn); err != nil {
		return 0, err
	}
	policy, err := choice.Resolve(time.Now())
	if err != nil {
		return 0, err
	}
	policy.Name = c.Name
	err = p.withJournal(session.OpenJournal, c.State, func(ctx context.Context, journal state.Store) error {
		return journal.SetPolicy(ctx, policy, time.Now())
	})
	if err != nil {
		return 0, fmt.Errorf("store the policy: %w", err)
	}
	if choice.File.Has(c.Name) {
		p.warn(fmt.Errorf("%s has a policy of that name, which is used in its place"+
			"\nhint: remove that one, or choose another name",
			choice.File.Place("policy", c.Name)))
	}
	_, err = fmt.Fprintf(p.Stdout, "set %s\n", render.Policy(&policy))
	return 0, err
}

// withoutPolicy hides the variables that change a policy: they are for runs in this environment alone.
func withoutPolicy(getenv func(string) string) func(string) string {
	return func(name string) string {
		if slices.ContainsFunc(policies.Keys(), func(k policies.Key) bool { return policies.Variable(k.Name) == name }) {
			return ""
		}
		return getenv(name)
	}
}

type policyRemoveCommand struct {
	flags.ConfigFlag
	flags.StateFlag
	Names []string `arg:"" optional:"" name:"name" help:"The policies."`
}

const policyRemoveUsage = `Remove policies from the journal. Tasks that exist keep the policy that they were made with.

Usage:
  retry policy rm NAME…

Example:
  retry policy rm deploy nightly
`

func (c *policyRemoveCommand) Run(p *Process) (int, error) {
	if len(c.Names) == 0 {
		return 0, errors.New("no policy to remove\nhint: retry policy rm NAME…; retry policy list shows them")
	}
	file, err := policies.Load(&c.ConfigFlag, p.Getenv, p.warn)
	if err != nil {
		return 0, err
	}
	file.Warn("", p.warn)
	if session.JournalAbsent(&p.Host, c.State) != nil {
		return 0, each(c.Names, func(name string) error { return notStored(name, file, nil) })
	}
	return 0, p.withJournal(session.OpenJournal, c.State, func(ctx context.Context, journal state.Store) error {
		return each(c.Names, func(name string) error {
			err := journal.RemovePolicy(ctx, name)
			if errors.Is(err, state.ErrNoPolicy) {
				stored, _ := journal.Policies(ctx) // only for the hint: without them it names fewer
				return notStored(name, file, stored)
			}
			if err != nil {
				return fmt.Errorf("remove %s: %w", text.Escape(name), err)
			}
			_, err = fmt.Fprintf(p.Stdout, "removed %s%s\n", text.Escape(name), successor(name, file))
			return err
		})
	})
}

// notStored says why a policy cannot be removed.
func notStored(name string, file *policies.File, stored []state.StoredPolicy) error {
	shown := text.Escape(name)
	if file.Has(name) {
		return fmt.Errorf("%s is not in the journal"+
			"\nhint: it stands in %s: remove it there", shown, file.Place("policy", name))
	}
	if policies.Builtin(name) != nil {
		return fmt.Errorf("%s is built in, and stays"+
			"\nhint: retry policy set %[1]s puts another one in its place", shown)
	}
	known := append(policies.BuiltinNames(), file.Names()...)
	for _, s := range stored {
		known = append(known, s.Name)
	}
	return policies.Unknown(name, known)
}

// successor says which policy has the name from now on.
func successor(name string, file *policies.File) string {
	switch {
	case file.Has(name):
		return "; the one in " + text.Escape(file.Place("policy", name)) + " stays in use"
	case policies.Builtin(name) != nil:
		return "; from now on it is the built-in one"
	}
	return ""
}
