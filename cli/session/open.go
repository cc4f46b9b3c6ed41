package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// OpenJournal opens the journal of a command that is nothing without it, and makes it where there is none.
func OpenJournal(ctx context.Context, p *Host, stateDir string) (state.Store, error) {
	journal, err := openWith(ctx, sqlite.OpenWritable, p, stateDir)
	if err == nil {
		p.noteContainer(journal)
	}
	return journal, err
}

// ChangeJournal opens the journal for a command that changes tasks. Where there is none, there is nothing to change,
// and none is made.
func ChangeJournal(ctx context.Context, p *Host, stateDir string) (state.Store, error) {
	if JournalAbsent(p, stateDir) != nil {
		return sqlite.OpenEmpty()
	}
	return OpenJournal(ctx, p, stateDir)
}

// ReadJournal opens the journal for a report, which writes nothing. Without a journal there are no tasks.
func ReadJournal(ctx context.Context, p *Host, stateDir string) (state.Store, error) {
	journal, err := openWith(ctx, sqlite.OpenReader, p, stateDir)
	if errors.Is(err, state.ErrNoJournal) {
		return sqlite.OpenEmpty()
	}
	return journal, err
}

func openWith(ctx context.Context, open func(context.Context, string) (*sqlite.Journal, error), p *Host,
	stateDir string) (state.Store, error) {
	place, err := lock.Locate(stateDir, p.Getenv)
	if err != nil {
		return nil, err
	}
	journal, err := open(ctx, place.Dir)
	if err != nil {
		return nil, text.WithHint(err, "retry doctor "+render.Command([]string{"--state", place.Dir})+" says what is wrong")
	}
	return journal, nil
}

// openForRun opens the journal of a run. A journal that cannot be used never stops the command, unless it is required.
func openForRun(ctx context.Context, p *Host, stateDir string, f *flags.JournalFlags, named bool,
	warn func(error)) (*Journal, error) {
	g := &Journal{
		warn: warn, named: named, required: f.RequireState, Stopping: p.Stopping(), signalled: p.signalled, outer: p.outer(),
	}
	switch {
	case f.NoState && f.RequireState:
		return nil, errors.New("--no-state and --require-state exclude each other\nhint: give one of them")
	case f.NoState:
		return g, nil
	}
	open := func() (journal state.Store, err error) {
		return openWith(ctx, func(ctx context.Context, dir string) (*sqlite.Journal, error) {
			j, err := sqlite.Open(ctx, dir)
			if err == nil {
				j.SyncFirst = f.RequireState
				p.noteContainer(j)
			}
			return j, err
		}, p, stateDir)
	}
	if !f.RequireState {
		g.reopen = open
	}
	var err error
	g.Journal, err = open()
	if err = g.replace(err); err != nil && !named && saidBefore(p, stateDir, err) {
		g.warn = func(error) {}
		defer func() { g.warn = warn }()
	}
	return g, g.failed(err, nil, f.RequireState)
}

// saidBefore reports whether an earlier run has warned today that there is no place for a journal: nobody chose one,
// and the home, as in many an image, cannot be written. An empty file in the temporary directory remembers that.
func saidBefore(p *Host, stateDir string, err error) bool {
	place, located := lock.Locate(stateDir, p.Getenv)
	chosen := stateDir != "" || p.Getenv("RETRY_STATE_DIR") != ""
	noPlace := located != nil && place.Dir == "" || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
	if chosen || !noPlace {
		return false
	}
	name := filepath.Join(os.TempDir(), fmt.Sprintf("retry-no-journal-%d", os.Geteuid()))
	if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) < saidFor {
		return true
	}
	_ = os.Remove(name)
	if file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_ = file.Close()
	}
	return false
}

// saidFor is how long a warning that there is no place for a journal holds.
const saidFor = 24 * time.Hour

// replace sets a damaged journal aside and begins a new one, which is only right before the task is in it. Of the
// processes that find the damage, one does so and warns. It returns the error that is left, and any other as it is.
func (g *Journal) replace(damage error) error {
	if g.reopen == nil || !errors.Is(damage, state.ErrCorrupt) {
		return damage
	}
	g.lost = damage
	aside, err := sqlite.SetAside(context.Background(), damage)
	if err != nil {
		return err
	}
	if aside != "" { // it is told before there is a new one: whoever is killed in between leaves no silence
		told := fmt.Errorf("the journal was damaged (%w); it is now in %s, and a new one is begun%s",
			withoutHint(damage), aside, recoveryHint(aside))
		g.warn(runner.Loss{Err: told, New: true})
	}
	journal, err := g.reopen()
	switch {
	case err != nil && aside == "":
		return err
	case err != nil:
		g.moved = true
		return fmt.Errorf("no new one could be begun: %w", err)
	}
	if g.Journal != nil {
		_ = g.Journal.Close()
	}
	g.Journal = journal
	return nil
}

// ownAgain takes the name of a task in the journal that has replaced the one in which it was taken.
func (g *Journal) ownAgain(t *task.Task, err error) error {
	if err != nil || t.Name == "" {
		return err
	}
	owned, _, err := g.Journal.OwnName(t.Name)
	if err == nil && !owned {
		err = state.ErrNamed
	}
	return err
}

// setAside makes the next run begin a new journal in place of a damaged one that has this run's task in it. It reports
// whether this process has moved it, and describes the damage.
func (g *Journal) setAside(damage error) (moved bool, described error) {
	if g.reopen == nil || !errors.Is(damage, state.ErrCorrupt) {
		return false, damage
	}
	aside, err := sqlite.SetAside(context.Background(), damage)
	if err != nil || aside == "" {
		return false, damage
	}
	return true, fmt.Errorf("%w; it is now in %s%s", withoutHint(damage), aside, recoveryHint(aside))
}

func withoutHint(err error) error {
	if fault, ok := errors.AsType[*state.Fault](err); ok {
		return fault.Err
	}
	return err
}

func recoveryHint(aside string) string {
	return fmt.Sprintf("\nhint: its tasks are not resumed; retry doctor %s says what is wrong with it, "+
		"and sqlite3 %s .recover saves what can be read",
		render.Command([]string{"--state", aside}), render.Command([]string{filepath.Join(aside, "journal.db")}))
}

// JournalAbsent returns an error where there is no journal yet; nil where there is one, or where that cannot be told.
func JournalAbsent(p *Host, stateDir string) error {
	place, err := lock.Locate(stateDir, p.Getenv)
	if err != nil || sqlite.Exists(place.Dir) {
		return nil
	}
	return fmt.Errorf("%s (%s): no journal there yet"+
		"\nhint: the first run makes it; do the jobs run as another user, or with another RETRY_STATE_DIR?",
		text.Escape(place.Dir), place.Source)
}

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
		reason, hint = " ("+damaged.Err.Error()+")", "retry policy set "+text.Escape(name)+" --replace writes it anew"
	} else if err != nil {
		reason = " (" + withoutHint(err).Error() + ")"
	}
	return fmt.Errorf("the journal's policy %s cannot be read%s, %s"+
		"\nhint: %s; a policy in the config file needs no journal",
		text.Escape(name), reason, once, hint)
}

// mayKnow reports whether a journal could have a policy of any name: one that is there, or cannot be looked at.
func mayKnow(p *Host, stateDir string) bool {
	place, err := lock.Locate(stateDir, p.Getenv)
	return err != nil || sqlite.Exists(place.Dir)
}

// AskReader asks the journal of a report, which makes none. One that cannot be read is no reason not to report.
func AskReader(ctx context.Context, p *Host, c *policies.Choice, stateDir string, warn func(error)) error {
	place, err := lock.Locate(stateDir, p.Getenv)
	if c.Settled || err != nil || !sqlite.Exists(place.Dir) {
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
