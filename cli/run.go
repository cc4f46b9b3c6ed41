package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
)

// runCommand is `retry [run] [flags] [--] COMMAND`.
type runCommand struct {
	policyFlags
	configFlag
	journalFlags
	nameFlags
	optionFlags
	environmentFlags
	outputFlags
	reportFlags
	groupFlags
	versionFlag
	IdempotencyKey string `group:"Running" placeholder:"KEY" help:"What the command finds as RETRY_IDEMPOTENCY_KEY. Default a random one."`
	DryRun         bool   `group:"Running" help:"Print the schedule of the policy and run nothing."`
	JSON           bool   `group:"Running" help:"With --dry-run: as JSON."`

	Command []string `kong:"-"`

	choice *policyChoice
}

// groupFlags say whose process group the command is in.
type groupFlags struct {
	Foreground bool `group:"Running" help:"Run the command in retry's own process group, as on a terminal."`
	Group      bool `group:"Running" help:"Run the command in a process group of its own, also on a terminal."`
}

func (c *runCommand) run(p *Process) (int, error) {
	if c.Version {
		_, err := fmt.Fprintf(p.Stdout, "retry %s\n", version())
		return 0, err
	}
	created, lines := time.Now(), c.observer(p)
	var err error
	if c.choice, err = p.choose(&c.policyFlags, &c.configFlag, lines.Warn); err != nil {
		return 0, err
	}
	c.choice.settled, c.choice.unasked = c.choice.settled || c.NoState, c.NoState
	if c.DryRun {
		return 0, c.dryRun(p, created, lines)
	}
	if err := c.check(); err != nil {
		return 0, err
	}
	policy, err := c.choice.resolve(created)
	if err != nil && (c.choice.settled || !c.mayKnow(p)) {
		return 0, err
	}
	task, err := c.newTask(p, policy, created)
	if err != nil {
		return 0, err
	}
	return c.execute(p, task, lines)
}

func (c *runCommand) check() error {
	switch {
	case c.JSON:
		return errors.New("--json goes with --dry-run\nhint: the command's own --json follows it: retry -- COMMAND --json")
	case c.Foreground && c.Group:
		return errors.New("--foreground and --group exclude each other\nhint: give one of them")
	case len(c.Command) == 0:
		return errors.New("no command to run\nhint: retry -- COMMAND [ARG…], for example retry -n 3 -- curl -fsS https://example.org")
	case c.Command[0] == "":
		return errors.New("the command's name is empty\nhint: a variable that is not set? retry -- COMMAND [ARG…]")
	}
	return c.nameFlags.check(c.NoState)
}

func (c *runCommand) newTask(p *Process, policy runner.Policy, created time.Time) (*runner.Task, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	key := c.IdempotencyKey
	if key == "" {
		random, err := uuid.NewRandom()
		if err != nil {
			return nil, err
		}
		key = random.String()
	}
	environment, err := c.kept(p)
	if err != nil {
		return nil, err
	}
	directory, err := os.Getwd()
	if err != nil {
		directory = "" // removed, or unreadable: the command may not mind, and a resume says it
	}
	task := &runner.Task{
		ID: id.String(), Parent: p.getenv(cmdexec.EnvTaskID), Name: c.name(), Once: c.Once, Kind: runner.KindCommand, Command: c.Command,
		Directory: directory, Environment: environment, Policy: policy, Options: c.optionsFor(&policy), IdempotencyKey: key, CreatedAt: created, Status: runner.Pending,
		History: runner.History{Began: created},
	}
	task.History.Phase = task.Options.Phase(phaseOf(id))
	return task, nil
}

// optionsFor captures what the policy's conditions look at.
func (c *runCommand) optionsFor(policy *runner.Policy) runner.Options {
	options := c.options()
	if looks := policy.Looks(); looks != runner.CaptureNone {
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

func (c *runCommand) execute(p *Process, task *runner.Task, lines render.Observer) (int, error) {
	kept, err := retentionOf(c.Retention, p.getenv)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	journal, err := c.openForRun(ctx, p, lines.Warn)
	if err != nil {
		return 0, err
	}
	if err := c.settle(ctx, journal, task, lines.Warn); err != nil {
		return 0, err
	}
	if lines, err = c.reported(lines, p, journal); err != nil {
		return 0, err
	}
	result, last, err := c.carryNamed(ctx, p, journal, task, lines)
	if last == nil || err != nil {
		return 0, err
	}
	if err := journal.tidy(ctx, last, kept); err != nil && c.Verbose {
		lines.Warn(err)
	}
	dieOf(result.DeathSignal())
	return result.ExitCode(), nil
}

// carryNamed carries the task through its attempts, or in its place an interrupted one of its name. It returns the one that it carried
// last; nil where there was nothing to do.
func (c *runCommand) carryNamed(ctx context.Context, p *Process, journal *guardedJournal, task *runner.Task,
	lines render.Observer) (runner.Result, *runner.Task, error) {
	for {
		met, err := c.meet(ctx, p, journal, task, c.end(p, task), lines)
		if err != nil || met.done {
			return runner.Result{}, nil, err
		}
		if earlier := met.interrupted; earlier != nil {
			before := earlier.AttemptCount
			result, err := p.goOn(ctx, earlier, journal, lines, continuation{group: &c.groupFlags, killOrphans: c.KillOrphans, ownStdin: true})
			if err != nil || earlier.Status != runner.Exhausted || earlier.AttemptCount > before {
				return result, earlier, err
			}
			_ = journal.journal.Release(earlier.Number)
			met.discarded = earlier // it was over already: this one is not to pay for that
		}
		if err := c.begin(ctx, p, met, task, lines); err != nil {
			return runner.Result{}, nil, err
		}
		result, err := c.carry(ctx, p, journal, task, lines)
		if !errors.Is(err, state.ErrNamed) { // else one of its name was requeued meanwhile
			return result, task, err
		}
	}
}

// end is a deadline by the clock, which stays where it is; zero where there is none.
func (c *runCommand) end(p *Process, t *runner.Task) time.Time {
	if c.Deadline == nil && p.getenv(cmdexec.EnvDeadline) == "" {
		return time.Time{}
	}
	end, _ := t.Deadline()
	return end
}

// carry carries a new task.
func (c *runCommand) carry(ctx context.Context, p *Process, journal *guardedJournal, task *runner.Task, lines render.Observer) (runner.Result, error) {
	carrier, err := p.carry(task, journal, lines, &c.groupFlags, false)
	if err != nil {
		return runner.Result{}, err
	}
	defer carrier.close()
	carrier.Signals = p.listen()
	return carrier.Run(ctx, task)
}

// begin has the task's budget begin after all that came first: another run of its name, and what that left running. A deadline
// stays where it is.
func (c *runCommand) begin(ctx context.Context, p *Process, met meeting, t *runner.Task, lines render.Observer) (err error) {
	if met.discarded != nil {
		if sig := p.outlive(ctx, met.discarded, lines, c.KillOrphans); sig != nil {
			dieOf(sig)
		}
	}
	if met.discarded == nil && !met.waited {
		return nil
	}
	t.CreatedAt = time.Now()
	t.History.Began = t.CreatedAt
	t.Policy, err = c.choice.resolve(t.CreatedAt)
	return err
}
