package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

type httpCommand struct {
	flags.HTTPFlags
	session.Wrapper
	URL []string `arg:"" optional:"" name:"url" help:"Where the request goes; http:// unless it says otherwise."`

	request *request.Request
	body    string       // has the part of the body that can be read only once; empty for none
	stdin   *spool.Spool // what was read of it
}

const httpUsage = `Send an HTTP request until it succeeds, but never twice what is not safe to repeat. The flags are curl's where curl has them, and so
are the exit statuses: 22 for a status of 400 or more, 6 DNS, 7 connect, 18 body cut, 28 timeout, 35 and 60 TLS, 52 and 56 no reply.

Usage:
  retry http [flags] URL

Examples:
  retry http -fo data.csv https://example.org/data.csv            a download; what was cut goes on where it was
  retry http --json @order.json https://example.org/orders        a POST: sent again only where it cannot have taken effect
  retry http --idempotency-key order-17 --json @order.json URL    one that the server knows by its key: safe to send again
  retry http -H 'Authorization: Bearer {env:TOKEN}' URL           the token is read at each send, and never stored
`

// httpHelp is the help of shared flags that mean something else for a request.
var httpHelp = map[string]string{
	"timeout":    "Stop an attempt that takes longer.",
	"kill-after": "Between TERM and KILL of a hook; a request is stopped at once. Default 5s.",
	"retry-on": "Retry these alone: 429,5xx,520-524,dns,connect,tls,reset,truncated,timeout,any, or an expression " +
		"such as 'status == 409'. Default: what is safe.",
	"quiet": "Print nothing but the reply; -f leaves that of an error out, too.",
}

func (c *httpCommand) Run(p *Process) (int, error) {
	if err := c.settle(); err != nil {
		return 0, err
	}
	return c.Wrap(&p.Host, c, false)
}

// settle gives the shared flags what curl's say.
func (c *httpCommand) settle() error {
	// The message leaves the value out: a cookie may be secret.
	if spec := flags.OrEmpty(c.Backoff); !strings.HasPrefix(spec, "expr:") &&
		(strings.ContainsAny(spec, "=/") || strings.HasSuffix(spec, ".txt")) {
		return errors.New("-b is the backoff here, not curl's cookies" +
			"\nhint: --cookie 'NAME={env:NAME}' sends one, --cookie FILE those of a file")
	}
	if c.MaxTime != nil {
		if c.Timeout != nil {
			return errors.New("--max-time and --timeout say the same thing\nhint: give one of them")
		}
		c.Timeout = c.MaxTime
	}
	return nil
}

// Check implements session.Work.
func (c *httpCommand) Check(p *session.Host) error {
	switch {
	case len(c.URL) == 0:
		return errors.New("no URL to request" +
			"\nhint: retry http [flags] URL, for example retry http -fsS https://example.org")
	case len(c.URL) > 1:
		return fmt.Errorf("%s is one URL too many"+
			"\nhint: a task is one request; quote a URL that has spaces",
			render.Command([]string{request.MaskURL(c.URL[1])}))
	}
	if err := c.CheckConditions(request.Kind); err != nil {
		return err
	}
	lookUp := func(name string) (string, bool) { return flags.LookUp(p.Environ, name) }
	request, err := c.Build(c.URL[0])
	if err != nil {
		return err
	}
	c.request = request
	if err := httpexec.Check(request, lookUp); err != nil || request.Output == "" {
		return err
	}
	return httpexec.CheckOutput(request.Output)
}

// Fill implements session.Work.
func (c *httpCommand) Fill(p *session.Host, t *task.Task) (err error) {
	if n := t.Policy.Consecutive; n > 1 && !c.request.Safe() {
		return fmt.Errorf("--consecutive %d sends a successful %s again, and it is not safe to repeat"+
			"\nhint: --idempotent says that it is", n, c.request.Method)
	}
	if c.body, err = session.BodySource(c.request); err != nil {
		return err
	}
	if c.body != "" {
		p.NoteBody(c.body, t)
	}
	t.Kind, t.Target = request.Kind, c.request
	t.IdempotencyKey = c.OwnKey(c.request)
	t.Options.Capture = c.CaptureMode()
	return nil
}

// Read implements session.Work. It reads to the end, as curl does.
func (c *httpCommand) Read(p *session.Host, t *task.Task, before *task.Source) (err error) {
	if c.body == "" {
		return nil
	}
	if c.stdin, err = p.ReadBody(c.body, math.MaxInt64, t, before); err == nil {
		c.request.StdinSize(c.stdin.Size())
	}
	return err
}

// ExecOptions implements session.Work.
func (c *httpCommand) ExecOptions() session.ExecOptions {
	return session.ExecOptions{Body: c.stdin, Quiet: c.Silent}
}
