package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
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
		Observer: render.NewWaiting(lines, w.Name, c.Gone, time.Duration(c.Timeout)),
	}
	result, err := run.Run(ctx, t)
	session.DieOf(result.Signal)
	if err != nil || t.Status == task.Succeeded {
		return 0, err
	}
	return task.ExitTimeout, nil
}

// waiter reads the target.
func (c *waitCommand) waiter(p *Process) (*session.Waiter, error) {
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
	target := c.Target[0]
	scheme, rest, isURL := strings.Cut(target, "://")
	host, port, notAddress := net.SplitHostPort(target)
	_, notTime := text.ParseDuration(target)
	switch {
	case isURL && scheme == "tcp":
		return session.WaitForPort(rest, rest, c.Gone), nil
	case isURL:
		return p.WaitForURL(target, c.Gone)
	case isNumber(target):
		return nil, fmt.Errorf("%s is a port without a host\nhint: retry wait localhost:%[1]s; a file is ./%[1]s", target)
	case notTime == nil:
		return nil, fmt.Errorf("%s is a time, and nothing to wait for"+
			"\nhint: retry wait -t %[1]s TARGET; a file is ./%[1]s", target)
	case notAddress == nil && !isNumber(port) && !strings.Contains(target, "/"):
		return nil, fmt.Errorf("invalid port %q of %s\nhint: a port is a number; a file is ./%[2]s", port, target)
	case notAddress == nil && isNumber(port):
		return session.WaitForPort(target, net.JoinHostPort(host, port), c.Gone), nil
	}
	return session.WaitForFile(target, c.Gone), nil
}

func isNumber(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }
