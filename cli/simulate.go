package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/render/chart"
	"github.com/10f93571/retry/plot"
)

// simulateFlags are the flags of every simulation.
type simulateFlags struct {
	subjectFlags
	Seed uint64 `group:"Simulation" default:"1" placeholder:"N" help:"The same seed gives the same figures. Default 1."`
	JSON bool   `group:"Simulation" help:"Print JSON; its fields are stable."`
}

type simulateLockCommand struct {
	simulateFlags
	Clients flags.Count    `group:"Simulation" default:"100" placeholder:"N" help:"How many want the lock. Default 100."`
	Hold    flags.Duration `group:"Simulation" default:"100ms" placeholder:"TIME" help:"How long each keeps it. Default 100ms."`
	Spin    flags.Duration `group:"Simulation" default:"0" placeholder:"TIME" help:"How long a call waits for it before it is a collision. Default 0."`
}

const simulateLockUsage = `Clients that all want one lock, each once. All call first at time 0, and none ever gives up: attempts and budgets do not count.
A call that finds the lock taken waits for it for as long as --spin says; those who wait get it in the order in which they came. Else it
is a collision, and the client backs off.

Usage:
  retry simulate lock [flags] [SPEC[/JITTER]…]

Example:
  retry simulate lock --hold 10ms lock-busy exp:100ms..10s/none exp:100ms..10s/equal exp:100ms..10s/full
`

func (c *simulateLockCommand) Run(p *Process) (int, error) {
	return 0, c.run(p, plot.Lock{Clients: int(c.Clients), Hold: time.Duration(c.Hold), Spin: time.Duration(c.Spin),
		Seed: c.Seed})
}

type simulateOutageCommand struct {
	simulateFlags
	Clients  flags.Count    `group:"Simulation" default:"10000" placeholder:"N" help:"How many use the service. Default 10000."`
	Down     flags.Duration `group:"Simulation" default:"2m" placeholder:"TIME" help:"How long it is down. Default 2m."`
	Capacity flags.Count    `group:"Simulation" default:"100" placeholder:"N" help:"How many calls a second it answers once it is back. Default 100."`
}

const simulateOutageUsage = `Clients of a service that is down, and comes back. All call first at time 0, and none ever gives up: attempts and budgets do
not count. Once it is back the service answers as many calls a second as --capacity says, up to that many at once, and rejects the
others. REJECTED are those alone, not the calls while it was down.

Usage:
  retry simulate outage [flags] [SPEC[/JITTER]…]

Examples:
  retry simulate outage exp:10s exp:10s/full exp:10s/equal sidekiq
  retry simulate outage --clients 5000 --down 10m --capacity 50 deploy --json
`

func (c *simulateOutageCommand) Run(p *Process) (int, error) {
	return 0, c.run(p, plot.Outage{Clients: int(c.Clients), Down: time.Duration(c.Down), Capacity: int(c.Capacity),
		Seed: c.Seed})
}

// run runs the simulation for each policy, all at the same time.
func (f *simulateFlags) run(p *Process, simulation plot.Simulation) error {
	subjects, err := p.subjects(&f.subjectFlags)
	if err != nil {
		return err
	}
	trials, errs := make([]plot.Trial, len(subjects)), make([]error, len(subjects))
	var running sync.WaitGroup
	for i, subject := range subjects {
		running.Go(func() { trials[i], errs[i] = simulation.Run(subject) })
	}
	running.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", subjects[i].Label, err)
		}
	}
	if f.JSON {
		return chart.SimulationJSON(p.Stdout, simulation, trials)
	}
	return chart.Simulation(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), simulation, trials)
}

const simulateUsage = `Let many clients of a policy loose on a lock, or on a service that is down and comes back, and see what becomes of them. Several
SPECs stand side by side; without one it is the policy that a run here would use.

Usage:
  retry simulate lock [flags] [SPEC[/JITTER]…]
  retry simulate outage [flags] [SPEC[/JITTER]…]

Examples:
  retry simulate lock lock-busy exp:100ms..10s
  retry simulate outage exp:10s exp:10s/full sidekiq
`
