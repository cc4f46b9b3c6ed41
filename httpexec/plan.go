package httpexec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// plan is what an attempt sends, and how: a task's request with the values of its references.
type plan struct {
	first       hop
	user        string // name:password for the server; empty for none
	methodGiven bool   // it stays through redirects, as with curl's -X
	Options     Options
	Safety      Safety
	patience    time.Duration // the longest delay of the server that is waited for; 0 = any
	refs        *references
	body        *joined // nil for none
}

// plan makes the plan of one attempt, anew for each: variables and files may be others by then.
func (e *Executor) plan(t *task.Task) (*plan, error) {
	p := &plan{refs: &references{lookup: e.Lookup}}
	request := request.Of(t)
	if request == nil {
		return p, &localError{"read the request", errors.New("the task has none"), task.ExitInternal}
	}
	if err := p.read(request, e.UserAgent, t.IdempotencyKey); err != nil {
		return p, err
	}
	p.Options.resolver = e.resolver
	if len(request.Body) == 0 {
		return p, nil
	}
	return p, e.fill(p, request)
}

// read takes in all but the body.
func (p *plan) read(r *request.Request, agent, key string) (err error) {
	p.methodGiven, p.patience = r.MethodGiven, r.MaxRetryAfter
	p.first.method = r.Method
	if p.first.url, p.user, err = readURL(r.URL, p.refs); err != nil {
		return err
	}
	if err = p.readUser(r.User); err != nil {
		return err
	}
	if p.Options, err = optionsOf(&r.Network, p.refs); err != nil {
		return err
	}
	if p.first.header, err = headerOf(r, p.defaultsOf(r, agent, key), p.refs); err != nil {
		return err
	}
	p.hideTyped(r)
	p.setForm(r)
	p.Safety.Idempotent = r.Safe()
	p.Safety.Keyed = r.Safe() && value(p.first.header, KeyHeader) != ""
	return p.settle(r)
}

// readUser puts -u before the URL's user, as curl does.
func (p *plan) readUser(user string) (err error) {
	if user == "" {
		return nil
	}
	if p.user, err = p.refs.expand(user); err != nil {
		return fmt.Errorf("the user: %w", err)
	}
	if !strings.Contains(p.user, ":") {
		p.user += ":"
	}
	return nil
}

// settle takes the headers that say how the request is written.
func (p *plan) settle(r *request.Request) error {
	header := p.first.header
	for _, name := range []string{"Host", "Content-Length"} {
		if takenAway(r.Header, name) {
			return fmt.Errorf("%w: the header %s cannot be left out", errHead, name)
		}
	}
	if coding := value(header, "Transfer-Encoding"); coding != "" {
		if !strings.EqualFold(coding, "chunked") {
			return fmt.Errorf("%w: of the values of Transfer-Encoding only chunked is known", errHead)
		}
		p.first.chunked = true
	}
	remove(header, "Transfer-Encoding")
	if value(header, "Accept-Encoding") != "" {
		p.Options.Compressed = false // net/http unpacks only what it asked for itself
	}
	if value(header, "Upgrade") != "" {
		p.Options.HTTP1 = true // HTTP/2 knows no such header
	}
	return checkHead(p.first.method, header)
}

// fill puts the body where it belongs.
func (e *Executor) fill(p *plan, r *request.Request) (err error) {
	if p.body, err = e.body(r); err != nil {
		return err
	}
	if r.Get {
		return p.query(p.body)
	}
	p.first.body = p.body
	return nil
}

// close lets go of the files.
func (p *plan) close() {
	if p.body != nil {
		p.body.close()
	}
}
