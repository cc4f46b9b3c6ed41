package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// httpCommand is `retry http [flags] URL`.
type httpCommand struct {
	flags.HTTPFlags
	wrapper
	URL []string `arg:"" optional:"" name:"url" help:"Where the request goes; http:// unless it says otherwise."`

	request *task.Request
	stdin   *spool.Spool // what the body reads from it
}

func (c *httpCommand) run(p *Process) (int, error) {
	if spec := value(c.Backoff); strings.Contains(spec, "=") && !strings.HasPrefix(spec, "expr:") { // not the spec, which may be secret
		return 0, errors.New("-b is the backoff here, not curl's cookies\nhint: -H 'Cookie: NAME={env:NAME}' sends one")
	}
	if c.MaxTime != nil {
		if c.Timeout != nil {
			return 0, errors.New("--max-time and --timeout say the same thing\nhint: give one of them")
		}
		c.Timeout = c.MaxTime
	}
	return c.wrap(p, c, false)
}

// check implements wrapped.
func (c *httpCommand) check(p *Process) error {
	switch {
	case len(c.URL) == 0:
		return errors.New("no URL to request\nhint: retry http [flags] URL, for example retry http -fsS https://example.org")
	case len(c.URL) > 1:
		return fmt.Errorf("%s is one URL too many\nhint: a task is one request; quote a URL that has spaces", render.Command([]string{task.MaskURL(c.URL[1])}))
	}
	if err := c.checkConditions(); err != nil {
		return err
	}
	request, err := c.Build(c.URL[0])
	if err != nil {
		return err
	}
	c.request = request
	if err := httpexec.Check(request, lookup(p.Environ)); err != nil || request.Output == "" {
		return err
	}
	return httpexec.CheckOutput(request.Output)
}

// checkConditions looks at what was typed for this request.
func (c *httpCommand) checkConditions() error {
	for _, list := range []struct {
		flag  string
		texts []string
	}{{"retry-on", c.RetryOn}, {"stop-on", c.StopOn}, {"success-on", c.SuccessOn}} {
		for _, text := range list.texts {
			if err := task.CheckStatuses(text); err != nil {
				return fmt.Errorf("--%s: %w", list.flag, err)
			}
		}
	}
	return nil
}

// fill implements wrapped. A body from stdin is read to its end first, as by curl: its time is none of the task's.
func (c *httpCommand) fill(p *Process, t *task.Task) (err error) {
	if n := t.Policy.Consecutive; n > 1 && !c.request.Safe() {
		return fmt.Errorf("--consecutive %d sends a successful %s again, and it is not safe to repeat\nhint: --idempotent says that it is", n, c.request.Method)
	}
	source, err := p.source(c.request)
	if err != nil {
		return err
	}
	if source != nil {
		if c.stdin, err = readBody(source); err != nil {
			return err
		}
		t.CreatedAt = time.Now()
		c.request.StdinSize(c.stdin.Size())
	}
	t.Kind, t.Request = task.KindHTTP, c.request
	if key := c.OwnKey(c.request); key != "" {
		t.IdempotencyKey = key
	}
	t.Options.Capture = c.CaptureMode()
	return nil
}

// means implements wrapped.
func (c *httpCommand) means() means {
	return means{body: c.stdin, quiet: c.Silent}
}

// carryRequest puts together what sends a task's request.
func (p *Process) carryRequest(t *task.Task, journal *guardedJournal, lines render.Observer, m means, resumed bool) (*carrier, error) {
	find := lookup(environment(p.Environ, t))
	if resumed { // a variable that is not set here may be elsewhere
		if err := httpexec.Check(t.Request, find); err != nil {
			return nil, err
		}
	}
	body, keep, done, err := journal.body(t, m, resumed)
	if err != nil {
		return nil, err
	}
	executor := &httpexec.Executor{
		Keep:      keep,
		Lookup:    find,
		UserAgent: "retry/" + strings.TrimPrefix(version(), "v"),
		Output:    httpexec.Output{Stdout: p.Stdout, Stderr: p.Stderr},
		Temporary: journal.temporary,
	}
	if !m.quiet {
		executor.Progress = render.Progress(lines)
	}
	if body != nil {
		executor.Stdin = body
	}
	commands := p.commands(t, m)
	commands.Stdin = stdio.NullStdin{}
	return p.carryWith(t, executor, commands, journal, lines, func() { executor.Close(); done() }), nil
}

// lookup returns what finds a variable; the last one of a name wins, as for a child.
func lookup(environ []string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if value, found := strings.CutPrefix(lookUp(environ, name), name+"="); found {
			return value, true
		}
		return "", false
	}
}

// warnOfRepetition tells that what nobody typed for this request has it sent again after it may have taken effect: a retry-on of
// RETRY_RETRY_ON, or of the default policy, was perhaps meant for commands.
func warnOfRepetition(t *task.Task, warn func(error)) {
	if len(t.Policy.RetryOn) == 0 || t.Request.Safe() {
		return
	}
	warn(fmt.Errorf("retry-on is from the environment or the default policy, and may have %s sent again after it has taken effect\nhint: to mean it, type --retry-on or -p NAME; --idempotent says that it is safe", text.Escape(t.Request.Method)))
}

// warnOfRequest tells what a user may not want of a new request.
func (w *wrapper) warnOfRequest(t *task.Task, journal *guardedJournal, warn func(error)) {
	if !journal.absent() {
		warnOfSecrets(t.Request, warn)
	}
	if w.RetryOn == nil && w.Policy == nil { // nobody typed it for this one
		warnOfRepetition(t, warn)
	}
}

// warnOfSecrets tells what of the request would be in the journal for who reads that.
func warnOfSecrets(r *task.Request, warn func(error)) {
	secrets := httpexec.LiteralSecrets(r)
	if len(secrets) == 0 {
		return
	}
	warn(fmt.Errorf("the journal keeps %s as typed here\nhint: {env:NAME} instead keeps only the name of a variable, which is read at each send", text.Escape(strings.Join(secrets, " and "))))
}
