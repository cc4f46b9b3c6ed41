package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/worker"
)

type workerCommand struct {
	flags.WorkerFlags
	flags.StateFlag
	flags.ConfigFlag
	flags.OutputFlags
	Drain flags.Drain `group:"Worker" placeholder:"due" help:"End when no queued task is left; --drain=due: when none is due. The exit status is 0 where all that it carried succeeded."`
}

const workerUsage = `Carry queued tasks: those of retry add and of the API, and what was requeued. Several workers share a journal. TERM or
Ctrl-C has it claim no more and wait for what runs, for --grace; what is cut off then counts for nothing, and another
worker takes it. A second signal cuts off at once.

Usage:
  retry worker [flags]

Examples:
  retry worker                               until it is told to stop
  retry worker --drain                       until nothing is left, in CI or after a night
  retry worker --concurrency 4 --commands 1  one command at a time
`

// Run implements command.
func (c *workerCommand) Run(p *Process) (int, error) {
	if err := p.fillInService(c, &c.ConfigFlag); err != nil {
		return 0, err
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	kept, err := session.RetentionOf(c.Retention, p.Getenv)
	if err != nil {
		return 0, err
	}
	p.Listen() // a signal that comes from now on ends it in order
	queue, err := session.OpenQueue(p.Stopping(), &p.Host, c.State)
	if err != nil && p.Stopping().Err() != nil { // while it waited for the journal
		return c.stopped(p), nil
	}
	if err != nil {
		return 0, err
	}
	lines := render.Shared(session.NewObserver(&p.Host, &c.OutputFlags))
	carrier, err := session.NewCarrier(&p.Host, queue, &c.WorkerFlags, nil, lines)
	if err != nil {
		return 0, errors.Join(err, queue.Close())
	}
	config := carrier.WorkerConfig(&c.WorkerFlags)
	config.Observer = session.Tell{Lines: lines}
	config.Drain = map[flags.Drain]worker.Drain{flags.DrainDue: worker.DrainDue, flags.DrainAll: worker.DrainAll}[c.Drain]
	if config.Drain == worker.DrainNever {
		lines.Say(fmt.Sprintf("carries queued tasks as %s, %d at once", config.Name, config.Concurrency))
	}
	w := worker.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	var pruning sync.WaitGroup
	pruning.Go(func() { carrier.Tidy(ctx, kept) })
	err = p.Carry(w)
	cancel()
	pruning.Wait()
	carrier.Close()
	if err = errors.Join(err, queue.Close()); err != nil {
		return 0, err
	}
	if p.Stopping().Err() != nil {
		return c.stopped(p), nil
	}
	if failed := w.Failed(); config.Drain != worker.DrainNever && failed > 0 {
		lines.Say(fmt.Sprintf("%d without success: retry status --failed", failed))
		return 1, nil
	}
	return 0, nil
}

// stopped returns the exit status of a worker that was told to stop. One that was to drain the queue has not done so:
// what comes next in a script must not begin.
func (c *workerCommand) stopped(p *Process) int {
	if c.Drain == "" {
		return 0
	}
	p.DieOfStop()
	return 1
}
