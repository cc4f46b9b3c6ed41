package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// pinger tells a monitor, such as healthchecks.io, that a run has started and how the task ended. A ping is sent beside
// the attempts and the hooks. One that fails is a warning, and changes nothing.
type pinger struct {
	render.Observer
	host   *Host
	url    string
	lookUp func(name string) (string, bool) // the environment, for {env:NAME} and the proxies
	last   chan error                       // receives the failure of the latest ping, or of the one before
}

// Started implements runner.Observer.
func (p *pinger) Started(t *task.Task) {
	if p.last == nil {
		p.send(pingOf(p.url, task.Pending, 0, ""))
	}
	p.Observer.Started(t)
}

// Finished implements runner.Observer. As with the hooks, a task that was cancelled or that goes on later has not
// failed.
func (p *pinger) Finished(t *task.Task, r runner.Result) {
	p.Observer.Finished(t, r)
	if t.Status.Finished() && t.Status != task.Cancelled && r.Signal == nil {
		captured := r.Outcome.Stderr
		if r.Outcome.Stdout != captured { // both are the same where they were one file
			captured = r.Outcome.Stdout + "\n" + captured
		}
		said := strings.TrimSpace(render.Summary(t, r) + "\n\n" + captured)
		status := t.Status
		if r.Lost() {
			status = task.Failed
		}
		p.send(pingOf(p.url, status, r.ExitCode(), text.Mask(said, t.Options.Mask)))
	}
}

// send sends a ping after the one before: a monitor that hears of the start last would wait for the end.
func (p *pinger) send(ping *request.Request) {
	before, done := p.last, make(chan error, 1)
	p.last = done
	go func() {
		var failed error
		if before != nil {
			failed = <-before
		}
		if ping != nil {
			failed = cmp.Or(p.deliver(ping), failed)
		}
		done <- failed
	}()
}

// wait waits for the latest ping. A signal that asks to stop ends it.
func (p *pinger) wait() {
	if p.last == nil {
		return
	}
	if err := <-p.last; err != nil && p.host.Stopping().Err() == nil {
		p.Warn(fmt.Errorf("ping %s: %w", text.Escape(request.MaskURL(p.url)), err))
	}
}

// The limits of a ping. A monitor that does not answer may delay the end of a run by twice pingBudget.
const (
	pingAttempts  = 3
	pingTimeout   = 4 * time.Second
	pingBudget    = 8 * time.Second
	pingRedirects = 5
)

// deliver sends a ping as retry http would send it, without a journal.
func (p *pinger) deliver(ping *request.Request) error {
	policy := task.DefaultPolicy()
	policy.Attempts, policy.Timeout, policy.Budget = pingAttempts, pingTimeout, pingBudget
	policy.Backoff, _ = backoff.Parse("linear:500ms", "") // a test sends one that is tried again
	t := &task.Task{
		ID: uuid.NewString(), Kind: request.Kind, Target: ping, Policy: policy, CreatedAt: time.Now(), Status: task.Pending,
	}
	t.History = task.History{Began: t.CreatedAt, Expires: t.Expiry(), Phase: rand.Float64()}
	executor := Unread(p.lookUp)
	defer executor.Close(t)
	run := &runner.Runner{
		Journal: &Journal{}, Executor: executor, Observer: render.NewQuiet(io.Discard), Random: rand.Float64,
	}
	result, err := run.Run(p.host.Stopping(), t)
	if err == nil && t.Status != task.Succeeded {
		err = errors.New(cmp.Or(result.Outcome.Message, "it was stopped"))
	}
	return err
}

// Unread returns an executor of requests whose replies nobody reads. lookUp is the environment.
func Unread(lookUp func(name string) (string, bool)) *httpexec.Executor {
	return &httpexec.Executor{
		Lookup: lookUp, UserAgent: userAgent(), Output: httpexec.Output{Stdout: io.Discard, Stderr: io.Discard},
		Temporary: func() (*os.File, error) { return spool.Temporary("") },
	}
}

// monitors are those that have a word for the state in the URL's query, with the parameter for a message. All others
// take the state at the end of the path, as healthchecks.io does, and the message as the body.
var monitors = [...]struct{ parameter, success, start, failure, message string }{
	{parameter: "state", success: "complete", start: "run", failure: "fail", message: "message"}, // Cronitor
	{parameter: "status", success: "up", failure: "down", message: "msg"},                        // Uptime Kuma
	{parameter: "status", success: "ok", start: "in_progress", failure: "error"},                 // Sentry
}

// pingOf returns the ping for a status, of which Pending stands for the start; nil where the monitor has none for it.
func pingOf(address string, status task.Status, exit int, said string) *request.Request {
	path, query, found := strings.Cut(address, "?")
	parameters := strings.Split(query, "&")
	for _, m := range monitors {
		at := slices.Index(parameters, m.parameter+"="+m.success)
		if at < 0 {
			continue
		}
		word := m.failure
		switch status {
		case task.Pending:
			word = m.start
		case task.Succeeded:
			word = m.success
		}
		if word == "" {
			return nil
		}
		parameters[at] = m.parameter + "=" + word
		if word == m.failure && m.message != "" {
			first, _, _ := strings.Cut(said, "\n")
			parameters = slices.DeleteFunc(parameters, func(p string) bool { return strings.HasPrefix(p, m.message+"=") })
			parameters = append(parameters, m.message+"="+url.QueryEscape(first))
		}
		return pingRequest("GET", path+"?"+strings.Join(parameters, "&"), "")
	}
	path = strings.TrimSuffix(path, "/")
	switch {
	case status == task.Pending:
		path += "/start"
	case status != task.Succeeded && exit > 255: // of Windows
		path += "/fail"
	case status != task.Succeeded:
		path += "/" + strconv.Itoa(exit)
	}
	if found {
		path += "?" + query
	}
	return pingRequest("POST", path, said)
}

func pingRequest(method, url, said string) *request.Request {
	r := &request.Request{Method: method, URL: url, Idempotent: true, KeyStyle: request.KeyNone,
		Network: request.Network{MaxRedirects: pingRedirects}}
	if said != "" {
		r.Header = []string{"Content-Type: text/plain; charset=utf-8"}
		r.Body = []request.Part{{Text: []byte(said)}}
	}
	return r
}

// checkPing returns an error if it is known at once that the URL of --ping cannot be asked for.
func checkPing(url string, lookUp func(string) (string, bool)) error {
	if err := httpexec.Check(pingRequest("POST", url, ""), lookUp); err != nil {
		return fmt.Errorf("--ping: %w", err)
	}
	return nil
}
