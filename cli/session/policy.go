package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/internal/text"
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

// askJournal asks a journal that may fail. Where only the journal can know the policy, the command runs once.
func (w *Wrapper) askJournal(ctx context.Context, journal *Journal, warn func(error)) error {
	err := journal.lost
	if err == nil && !journal.absent() {
		err = w.choice.Ask(ctx, journal.Journal)
		_, damaged := errors.AsType[*policies.Damaged](err)
		switch {
		case err == nil, damaged && w.RequireState:
			return err
		case damaged:
			w.choice.Base = nil // a built-in policy of that name is not what was asked for
		default:
			if err := journal.failed(journal.replace(err), nil, w.RequireState); err != nil {
				return err
			}
		}
	}
	if w.choice.Base == nil {
		w.choice.StandIn()
		warn(onceError(w.choice.Name, err))
	}
	return nil
}

// onceError says why the command runs only once.
func onceError(name string, err error) error {
	const once = "so the command runs once, without retries: that policy may forbid them"
	reason, hint := "", "retry doctor says what is wrong"
	if damaged, ok := errors.AsType[*policies.Damaged](err); ok {
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
	if _, damaged := errors.AsType[*policies.Damaged](err); damaged || c.Base == nil {
		return err
	}
	warn(fmt.Errorf("without the journal's policies: %w", err))
	return nil
}
