package cli

import (
	"cmp"
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
)

// runCommand is `retry [run] [flags] [--] COMMAND`.
type runCommand struct {
	policyFlags
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
	created := time.Now()
	policy, err := c.resolve(p.getenv, created)
	if err != nil {
		return 0, err
	}
	if c.DryRun {
		return 0, c.printSchedule(p, &policy)
	}
	if err := c.check(); err != nil {
		return 0, err
	}
	task, err := c.newTask(p, policy, created)
	if err != nil {
		return 0, err
	}
	return c.execute(p, task)
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
		ID: id.String(), Parent: p.getenv(cmdexec.EnvTaskID), Name: c.ID, Once: c.Once, Kind: runner.KindCommand, Command: c.Command,
		Directory: directory, Environment: environment, Policy: policy, Options: c.options(), IdempotencyKey: key, CreatedAt: created, Status: runner.Pending,
		History: runner.History{Began: created},
	}
	task.History.Phase = task.Options.Phase(phaseOf(id))
	return task, nil
}

// phaseOf is the phase of a task that no journal counts.
func phaseOf(id uuid.UUID) float64 {
	h := fnv.New64a()
	_, _ = h.Write(id[:])
	return float64(h.Sum64()>>11) / (1 << 53)
}

func (c *runCommand) execute(p *Process, task *runner.Task) (int, error) {
	kept, err := retentionOf(c.Retention, p.getenv)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	lines := c.observer(p)
	journal, err := c.openForRun(ctx, p, lines.Warn)
	if err != nil {
		return 0, err
	}
	if lines, err = c.reported(lines, p, journal); err != nil {
		return 0, err
	}
	met, err := c.meet(ctx, journal, task, lines)
	if err != nil || met.done {
		return 0, err
	}
	if met.discarded != nil {
		if sig := p.outlive(ctx, met.discarded, lines); sig != nil {
			dieOf(sig)
		}
		met.waited = true
	}
	if met.waited {
		if err := c.beginNow(p, task); err != nil {
			return 0, err
		}
	}
	result, err := c.attempt(ctx, p, journal, task, met.interrupted, lines)
	if err := journal.tidy(ctx, cmp.Or(met.interrupted, task), kept); err != nil && c.Verbose {
		lines.Warn(err)
	}
	if err != nil {
		return 0, err
	}
	dieOf(result.DeathSignal())
	return result.ExitCode(), nil
}

// beginNow has the task's budget begin after another run of its name. A deadline stays where it is.
func (c *runCommand) beginNow(p *Process, t *runner.Task) (err error) {
	t.CreatedAt = time.Now()
	t.History.Began = t.CreatedAt
	t.Policy, err = c.resolve(p.getenv, t.CreatedAt)
	return err
}

// attempt carries the task, or an interrupted one in its place, through its attempts.
func (c *runCommand) attempt(ctx context.Context, p *Process, journal *guardedJournal, task, interrupted *runner.Task,
	lines render.Observer) (runner.Result, error) {
	if interrupted != nil {
		return p.goOn(ctx, interrupted, journal, lines, continuation{group: &c.groupFlags, ownStdin: true})
	}
	carrier, err := p.carry(task, journal, lines, &c.groupFlags, false)
	if err != nil {
		return runner.Result{}, err
	}
	defer carrier.close()
	carrier.Signals = p.listen()
	return carrier.Run(ctx, task)
}
