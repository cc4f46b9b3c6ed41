package cli

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
)

type serveCommand struct {
	flags.ServeFlags
	flags.WorkerFlags
	flags.StateFlag
	flags.ConfigFlag
	flags.OutputFlags
}

const serveUsage = `Serve the HTTP API, and carry what it is given: services hand their calls over, and retry sends them until they succeed.
Nothing has to be configured: it listens on loopback for programs of its own user, keeps its tasks in the
journal, and has a worker.

Usage:
  retry serve [flags]

Examples:
  retry serve
  curl -d '{"targetUrl": "https://example.org/hook", "bodyJson": {"n": 1}}' -H 'Content-Type: application/json' \
       http://127.0.0.1:7470/retry-tasks
  retry serve --listen unix:/run/retry/api.sock
  retry serve --listen 0.0.0.0:7470 --token-file tokens --tls-cert cert.pem --tls-key key.pem
`

// Run implements command.
func (c *serveCommand) Run(p *Process) (int, error) {
	if err := p.fillInService(c, &c.ConfigFlag); err != nil {
		return 0, err
	}
	if err := c.WorkerFlags.Check(); err != nil {
		return 0, err
	}
	lines := render.Shared(session.NewObserver(&p.Host, &c.OutputFlags))
	service, err := p.OpenService(p.Stopping(), session.ServiceOptions{
		ServeFlags: &c.ServeFlags, WorkerFlags: &c.WorkerFlags, State: c.State, Config: &c.ConfigFlag, Lines: lines,
	})
	if err != nil && p.Stopping().Err() != nil { // while it waited for the journal
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	service.Announce()
	err = service.Run()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if err = errors.Join(err, service.Close()); err != nil {
		return 0, fmt.Errorf("serve: %w", err)
	}
	return 0, nil
}
