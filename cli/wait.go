package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

type waitCommand struct {
	Timeout flags.Duration `short:"t" default:"1m" placeholder:"TIME" help:"Give up after this time, with exit status 124; 0 = never. Default 1m."`
	Gone    bool           `help:"Wait until it is no longer there."`
	Backoff string         `short:"b" default:"exp:100ms..1s" placeholder:"SPEC" help:"The time between two looks. Default exp:100ms..1s."`
	Quiet   bool           `short:"q" help:"Print nothing."`
	Target  []string       `arg:"" optional:"" help:"What to wait for."`
}

const waitUsage = `Wait until a port takes connections, a URL answers with a status of 2xx, or a file is there.
A socket's path counts once something listens on it. Nothing of it goes into the journal.

Usage:
  retry wait [flags] HOST:PORT|URL|FILE

Examples:
  retry wait localhost:5432 && ./migrate           a database that starts
  retry wait -t 5m http://localhost:8080/health    a service; redirects are followed
  retry wait --gone /var/lock/deploy               the end of another deployment
`

func (c *waitCommand) Run(p *Process) (int, error) {
	w, err := c.waiter(p)
	if err != nil {
		return 0, err
	}
	spec, err := backoff.Parse(c.Backoff, "none")
	if err != nil {
		return 0, fmt.Errorf("--backoff: %w", err)
	}
	now := time.Now()
	t := &task.Task{
		Policy: task.Policy{Backoff: spec, Consecutive: 1}, CreatedAt: now, Status: task.Pending,
		History: task.History{Began: now},
	}
	ctx, cancel := context.WithCancel(context.Background())
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.Timeout))
	}
	defer cancel()
	lines := session.NewObserver(&p.Host, &flags.OutputFlags{Quiet: c.Quiet, CI: "none"})
	run := &runner.Runner{
		Journal: &session.Journal{}, Executor: w, Signals: p.Listen(), Random: func() float64 { return 0 },
		Observer: render.NewWaiting(lines, w.name, c.Gone, time.Duration(c.Timeout)),
	}
	result, err := run.Run(ctx, t)
	session.DieOf(result.Signal)
	if err != nil || t.Status == task.Succeeded {
		return 0, err
	}
	return task.ExitTimeout, nil
}

// waiter is an Executor whose attempts look whether something is there.
type waiter struct {
	name string // of what it looks for, for people
	look func(context.Context) error
	gone bool // an attempt succeeds where it is not there
}

// waiter reads the target.
func (c *waitCommand) waiter(p *Process) (*waiter, error) {
	const hint = "\nhint: retry wait HOST:PORT, retry wait URL or retry wait FILE"
	switch {
	case len(c.Target) == 0 || c.Target[0] == "":
		return nil, errors.New("nothing to wait for" + hint)
	case len(c.Target) > 1:
		hint := "\nhint: retry wait A && retry wait B; retry wait A && COMMAND"
		if isNumber(c.Target[1]) {
			hint = "\nhint: retry wait " + net.JoinHostPort(c.Target[0], c.Target[1])
		}
		return nil, errors.New("one thing to wait for, and more words follow it" + hint)
	}
	w := &waiter{name: c.Target[0], gone: c.Gone}
	scheme, rest, isURL := strings.Cut(w.name, "://")
	host, port, notAddress := net.SplitHostPort(w.name)
	_, notTime := text.ParseDuration(w.name)
	switch {
	case isURL && scheme == "tcp":
		w.look, w.name = dial("tcp", rest), rest
	case isURL:
		return w, w.lookAtURL(p)
	case isNumber(w.name):
		return nil, fmt.Errorf("%s is a port without a host\nhint: retry wait localhost:%[1]s; a file is ./%[1]s", w.name)
	case notTime == nil:
		return nil, fmt.Errorf("%s is a time, and nothing to wait for"+
			"\nhint: retry wait -t %[1]s TARGET; a file is ./%[1]s", w.name)
	case notAddress == nil && !isNumber(port) && !strings.Contains(w.name, "/"):
		return nil, fmt.Errorf("invalid port %q of %s\nhint: a port is a number; a file is ./%[2]s", port, w.name)
	case notAddress == nil && isNumber(port):
		w.look = dial("tcp", net.JoinHostPort(host, port))
	default:
		path := w.name
		w.name, w.look = "the file "+path, func(ctx context.Context) error { return lookAtFile(ctx, path) }
	}
	return w, nil
}

func isNumber(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }

func dial(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
}

// lookAtFile finds a file, and a socket that somebody listens on.
func lookAtFile(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Type() == fs.ModeSocket {
		err = dial("unix", path)(ctx)
		if errors.Is(err, syscall.EPROTOTYPE) { // one of datagrams
			err = nil
		}
	}
	return err
}

// lookAtURL sends a GET as retry http would.
func (w *waiter) lookAtURL(p *Process) error {
	lookUp := func(name string) (string, bool) { return flags.LookUp(p.Environ, name) }
	asked := &request.Request{Method: "GET", URL: w.name, KeyStyle: request.KeyNone,
		Network: request.Network{MaxRedirects: 10}}
	w.name = request.MaskURL(w.name)
	if err := httpexec.Check(asked, lookUp); err != nil {
		return fmt.Errorf("%w\nhint: retry wait takes http and https; for another service HOST:PORT", err)
	}
	executor := session.Unread(lookUp)
	w.look = func(ctx context.Context) error {
		t := &task.Task{Kind: request.Kind, Target: asked, Status: task.Failed}
		o := executor.Execute(ctx, t, runner.Call{Number: 1})
		_, _ = executor.Flush(t, nil)
		if o.Error == task.ErrorNone && o.Reply.Status/100 == 2 {
			return nil
		}
		return errors.New(render.Description(o, task.Decision{}))
	}
	return nil
}

// lookTimeout bounds one look: a host that drops packets never answers.
const lookTimeout = 10 * time.Second

// Execute implements runner.Executor.
func (w *waiter) Execute(ctx context.Context, _ *task.Task, c runner.Call) task.Outcome {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.look(limited) }()
	o := task.Outcome{Exit: task.ExitUnsuccessful}
	for {
		select {
		case sig := <-c.Signals:
			if task.Stops(sig) && o.Stop == nil {
				o.Stop = sig
				cancel()
			}
		case err := <-ended:
			there := err == nil
			// A connection notices the end of the time before the context does.
			end, bounded := ctx.Deadline()
			switch {
			case o.Stop != nil, ctx.Err() != nil, bounded && !time.Now().Before(end): // it was cut off
			case there && w.gone:
				o.Message = "it is still there"
			case there, w.gone && !errors.Is(err, fs.ErrPermission):
				o.Exit = task.ExitSuccess
			default:
				o.Message = reason(err)
			}
			o.Duration = time.Since(begun)
			return o
		}
	}
}

// reason says in few words why something is not there.
func reason(err error) string {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		return unknown.Err
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
		return "no answer"
	}
	return err.Error()
}

// Flush implements runner.Executor.
func (w *waiter) Flush(*task.Task, <-chan os.Signal) (os.Signal, error) { return nil, nil }

// HoldsOutput implements runner.Executor.
func (w *waiter) HoldsOutput(*task.Task) bool { return false }
