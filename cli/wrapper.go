package cli

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// wrapper is what `retry run` and `retry http` have in common: a task is made, and carried through its attempts.
type wrapper struct {
	policyFlags
	configFlag
	journalFlags
	nameFlags
	hookFlags
	environmentFlags
	outputFlags
	reportFlags
	DryRun bool

	what    wrapped
	choice  *policyChoice
	options task.Options // as they were asked for: conditions may want more
}

// wrapped is what the attempts execute.
type wrapped interface {
	// check refuses what makes no sense, before anything is made.
	check(p *Process) error
	// fill gives a new task what to execute, and how.
	fill(p *Process, t *task.Task) error
	// means are what this process has for the execution.
	means() means
}

func (w *wrapper) wrap(p *Process, what wrapped, asJSON bool) (int, error) {
	created, lines := time.Now(), w.observer(p)
	var err error
	if w.choice, err = p.choose(&w.policyFlags, &w.configFlag, lines.Warn); err != nil {
		return 0, err
	}
	w.what = what
	w.choice.settled, w.choice.unasked = w.choice.settled || w.NoState, w.NoState
	if w.DryRun {
		return 0, w.dryRun(p, created, lines, asJSON)
	}
	if err := what.check(p); err != nil {
		return 0, err
	}
	if err := w.nameFlags.check(w.NoState); err != nil {
		return 0, err
	}
	policy, err := w.choice.resolve(created)
	if err != nil && (w.choice.settled || !w.mayKnow(p)) {
		return 0, err
	}
	tk, err := w.newTask(p, policy, created)
	if err != nil {
		return 0, err
	}
	return w.execute(p, tk, lines)
}

func (w *wrapper) newTask(p *Process, policy task.Policy, created time.Time) (*task.Task, error) {
	id, err := uuid.NewV7FromReader(chance{})
	if err != nil {
		return nil, err
	}
	key, err := uuid.NewRandomFromReader(chance{})
	if err != nil {
		return nil, err
	}
	environment, err := w.kept(p)
	if err != nil {
		return nil, err
	}
	directory, err := os.Getwd()
	if err != nil {
		directory = "" // removed, or unreadable: the command may not mind, and a resume says it
	}
	tk := &task.Task{
		ID: id.String(), Parent: p.getenv(cmdexec.EnvTaskID), Name: w.name(), Once: w.Once,
		Directory: directory, Environment: environment, Policy: policy, Options: w.hookFlags.options(), IdempotencyKey: key.String(), CreatedAt: created,
		Status: task.Pending,
	}
	if err := w.what.fill(p, tk); err != nil {
		return nil, err
	}
	w.options = tk.Options
	tk.Options = w.optionsFor(tk)
	tk.History = task.History{Began: tk.CreatedAt, Expires: tk.Expiry(), Phase: tk.Options.Phase(phaseOf(id))}
	return tk, nil
}

// chance yields what the runtime's generator does, a ChaCha8 whose key comes from the system. To ask the system itself takes longer at
// a start; nobody is kept out by an id, so that it need only be unlike all others.
type chance struct{}

func (chance) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(rand.Uint64())
	}
	return len(b), nil
}

// optionsFor captures what the conditions of the task's policy look at. The reply to a request they look at anyway.
func (w *wrapper) optionsFor(t *task.Task) task.Options {
	options := w.options
	if looks := t.Policy.Looks(); looks != task.CaptureNone && t.Kind == task.KindCommand {
		options.Capture = options.Capture.And(looks)
	}
	return options
}

// phaseOf is the phase of a task that no journal counts.
func phaseOf(id uuid.UUID) float64 {
	h := fnv.New64a()
	_, _ = h.Write(id[:])
	return float64(h.Sum64()>>11) / (1 << 53)
}

func (w *wrapper) execute(p *Process, tk *task.Task, lines render.Observer) (int, error) {
	kept, err := retentionOf(w.Retention, p.getenv)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	journal, err := w.openForRun(ctx, p, lines.Warn)
	if err != nil {
		return 0, err
	}
	if err := w.settle(ctx, journal, tk, lines.Warn); err != nil {
		return 0, err
	}
	if lines, err = w.reported(lines, p, journal); err != nil {
		return 0, err
	}
	if tk.Request != nil {
		w.warnOfRequest(tk, journal, lines.Warn)
	}
	result, last, err := w.carryNamed(ctx, p, journal, tk, lines)
	if last == nil || err != nil {
		return 0, err
	}
	if err := journal.tidy(ctx, last, kept); err != nil && w.Verbose {
		lines.Warn(err)
	}
	dieOf(result.DeathSignal())
	return result.ExitCode(), nil
}

// carryNamed carries the task through its attempts, or in its place an interrupted one of its name. It returns the one that it carried
// last; nil where there was nothing to do.
func (w *wrapper) carryNamed(ctx context.Context, p *Process, journal *guardedJournal, tk *task.Task,
	lines render.Observer) (runner.Result, *task.Task, error) {
	for {
		met, err := w.meet(ctx, p, journal, tk, w.end(p, tk), lines)
		if err != nil || met.done {
			return runner.Result{}, nil, err
		}
		if earlier := met.interrupted; earlier != nil {
			if deferred(earlier, time.Now()) {
				result := runner.Result{Decision: task.Decision{Verdict: task.VerdictRetry, Reason: task.ReasonDeferred}, Outcome: earlier.Last.Outcome}
				lines.Finished(earlier, result)
				return result, earlier, nil
			}
			before := earlier.AttemptCount
			result, err := p.goOn(ctx, earlier, journal, lines, continuation{means: w.what.means(), killOrphans: w.KillOrphans, ownStdin: true})
			if err != nil || earlier.Status != task.Exhausted || earlier.AttemptCount > before {
				return result, earlier, err
			}
			_ = journal.journal.Release(earlier.Number)
			met.discarded = earlier // it was over already: this one is not to pay for that
		}
		if err := w.begin(ctx, p, met, tk, lines); err != nil {
			return runner.Result{}, nil, err
		}
		result, err := w.carry(ctx, p, journal, tk, lines)
		if !errors.Is(err, state.ErrNamed) { // else one of its name was requeued meanwhile
			return result, tk, err
		}
	}
}

// deferred reports whether a task still waits for longer than a server may have a process wait.
func deferred(t *task.Task, now time.Time) bool {
	return t.Reason == task.ReasonDeferred && t.NextAttemptAt.Sub(now) > t.Request.MaxRetryAfter && t.Request.MaxRetryAfter > 0
}

// end is a deadline by the clock, which stays where it is; zero where there is none.
func (w *wrapper) end(p *Process, t *task.Task) time.Time {
	if w.Deadline == nil && p.getenv(cmdexec.EnvDeadline) == "" {
		return time.Time{}
	}
	end, _ := t.Deadline()
	return end
}

// carry carries a new task.
func (w *wrapper) carry(ctx context.Context, p *Process, journal *guardedJournal, tk *task.Task, lines render.Observer) (runner.Result, error) {
	carrier, err := p.carry(tk, journal, lines, w.what.means(), false)
	if err != nil {
		return runner.Result{}, err
	}
	defer carrier.close()
	carrier.Signals = p.listen()
	return carrier.Run(ctx, tk)
}

// begin has the task's budget begin after all that came first: another run of its name, and what that left running. A deadline
// stays where it is.
func (w *wrapper) begin(ctx context.Context, p *Process, met meeting, t *task.Task, lines render.Observer) (err error) {
	if met.discarded != nil {
		if sig := p.outlive(ctx, met.discarded, lines, w.KillOrphans); sig != nil {
			dieOf(sig)
		}
	}
	if met.discarded == nil && !met.waited {
		return nil
	}
	t.CreatedAt = time.Now()
	t.History.Began, t.History.Expires = t.CreatedAt, t.Expiry()
	t.Policy, err = w.choice.resolve(t.CreatedAt)
	return err
}
