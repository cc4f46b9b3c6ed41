package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// settlePolicy has the journal say what it knows of the policy, and gives the task the one that holds.
func (w *Wrapper) settlePolicy(ctx context.Context, journal *Journal, t *task.Task, warn func(error)) (err error) {
	if !w.choice.Settled {
		if err := w.askJournal(ctx, journal, warn); err != nil {
			return err
		}
	}
	if t.Policy, err = w.choice.Resolve(t.CreatedAt); err == nil {
		t.Options = w.optionsFor(t)
	}
	return err
}

// askJournal asks a journal that may fail. A policy that can be read nowhere else lets the command run once.
func (w *Wrapper) askJournal(ctx context.Context, journal *Journal, warn func(error)) error {
	err := journal.lost
	if !journal.absent() && err == nil {
		err = w.choice.Ask(ctx, journal.Journal)
	}
	damaged := (*policies.Damaged)(nil)
	switch {
	case err == nil && (!journal.absent() || w.choice.Base != nil):
		return nil
	case errors.As(err, &damaged) && w.RequireState:
		return err
	case damaged == nil && journal.lost == nil && !journal.absent():
		if err := journal.handlePolicyError(err, w.RequireState); err != nil {
			return err
		}
	}
	if damaged != nil || w.choice.Base == nil {
		w.choice.StandIn()
		warn(onceError(w.choice.Name, err))
	}
	return nil
}

// handlePolicyError goes on after an error of the journal: with a new one in place of a damaged one, or without any.
func (g *Journal) handlePolicyError(err error, fatal bool) error {
	if !fatal && errors.Is(err, state.ErrCorrupt) && g.replaceInPlace(err) {
		return nil
	}
	return g.failed(err, nil, fatal)
}

// onceError says why there is one attempt alone.
func onceError(name string, err error) error {
	const once = "so the command runs once, without retries: that policy may forbid them"
	reason, hint := "", "retry doctor says what is wrong"
	if damaged := (*policies.Damaged)(nil); errors.As(err, &damaged) {
		reason, hint = " ("+damaged.Err.Error()+")", "retry policy set "+text.Escape(name)+" writes it anew"
	} else if err != nil {
		reason = " (" + withoutHint(err).Error() + ")"
	}
	return fmt.Errorf("the journal's policy %s cannot be read%s, %s"+
		"\nhint: %s; a policy in the config file needs no journal",
		text.Escape(name), reason, once, hint)
}

// mayKnow reports whether a journal could have a policy of any name: one that is there, or cannot be looked at.
func mayKnow(p *Host, stateDir string, stateless bool) bool {
	if stateless {
		return false
	}
	dir, err := lock.Dir(stateDir, p.Getenv)
	return err != nil || sqlite.Exists(dir)
}

// AskReader asks the journal of a report, which makes none. One that cannot be read is no reason not to report.
func AskReader(ctx context.Context, p *Host, c *policies.Choice, stateDir string, warn func(error)) error {
	dir, err := lock.Dir(stateDir, p.Getenv)
	if c.Settled || err != nil || !sqlite.Exists(dir) {
		return nil
	}
	journal, err := ReadJournal(ctx, p, stateDir)
	if err == nil {
		defer func() { _ = journal.Close() }()
		err = c.Ask(ctx, journal)
	}
	if err == nil {
		return nil
	}
	if damaged := (*policies.Damaged)(nil); c.Base == nil || errors.As(err, &damaged) {
		return err
	}
	warn(fmt.Errorf("without the journal's policies: %w", err))
	return nil
}
