package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Waiter is an Executor whose attempts look whether something is there.
type Waiter struct {
	Name string // of what it looks for, for people

	look func(context.Context) error
	gone bool // an attempt succeeds where it is not there
}

// WaitForPort looks whether an address takes connections.
func WaitForPort(name, address string, gone bool) *Waiter {
	return &Waiter{Name: name, look: dial("tcp", address), gone: gone}
}

// WaitForFile looks for a file, and for a socket that somebody listens on.
func WaitForFile(path string, gone bool) *Waiter {
	look := func(ctx context.Context) error { return lookAtFile(ctx, path) }
	return &Waiter{Name: "the file " + path, look: look, gone: gone}
}

func dial(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
}

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

// WaitForURL looks by sending a GET, as retry http would.
func (p *Host) WaitForURL(url string, gone bool) (*Waiter, error) {
	lookUp := func(name string) (string, bool) { return flags.LookUp(p.Environ, name) }
	asked := &request.Request{Method: "GET", URL: url, KeyStyle: request.KeyNone,
		Network: request.Network{MaxRedirects: 10}}
	w := &Waiter{Name: request.MaskURL(url), gone: gone}
	if err := httpexec.Check(asked, lookUp); err != nil {
		return nil, fmt.Errorf("%w\nhint: retry wait takes http and https; for another service HOST:PORT", err)
	}
	executor := Unread(lookUp)
	w.look = func(ctx context.Context) error {
		t := &task.Task{Kind: request.Kind, Target: asked, Status: task.Failed}
		o := executor.Execute(ctx, t, runner.Call{Number: 1})
		_, _ = executor.Flush(t, nil)
		if o.Error == task.ErrorNone && o.Reply.Status/100 == 2 {
			return nil
		}
		why := render.Description(o, task.Decision{})
		if o.Error == task.ErrorNone || o.Error == task.ErrorConnect ||
			o.Error == task.ErrorDNS && o.Reply.Default.Event == string(httpexec.EventNoHost) {
			return goneError(why)
		}
		return errors.New(why)
	}
	return w, nil
}

// lookTimeout bounds one look: a host that drops packets never answers.
const lookTimeout = 10 * time.Second

// Execute implements runner.Executor.
func (w *Waiter) Execute(ctx context.Context, _ *task.Task, c runner.Call) task.Outcome {
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
			case there, w.gone && isGone(err):
				o.Exit = task.ExitSuccess
			default:
				o.Message = reason(err)
			}
			o.Duration = time.Since(begun)
			return o
		}
	}
}

// goneError says why there is nothing behind a URL.
type goneError string

func (e goneError) Error() string { return string(e) }

// isGone reports whether an error says that there is nothing. One that says nothing, as that of a host which does not
// answer, or of a name server, does not.
func isGone(err error) bool {
	name, unknown := errors.AsType[*net.DNSError](err)
	return unknown && name.IsNotFound || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, new(goneError))
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
func (w *Waiter) Flush(*task.Task, <-chan os.Signal) (os.Signal, error) { return nil, nil }

// HoldsOutput implements runner.Executor.
func (w *Waiter) HoldsOutput(*task.Task) bool { return false }
