package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/task"
)

type grpcCommand struct {
	flags.GRPCFlags
	session.Wrapper
	Words []string `arg:"" optional:"" name:"host:port package.Service/Method" help:"The server and the method; or one URL, grpc://host:port/package.Service/Method. grpcs:// is TLS."`

	method string // empty where the URL has it
	body   string // can be read only once; empty for none
	call   *grpcexec.Call
}

const grpcUsage = `Make a unary call of gRPC until it succeeds, but never twice what may have taken effect. UNAVAILABLE is tried again, and what was
not sent; other statuses where --retry-on names them. The server decides when, or that it is over, with grpc-retry-pushback-ms.

The exit status is 64 + the status, as grpcurl has it: 64+14 for UNAVAILABLE, also where there is no connection; 64+4 for a timeout.
125 is a mistake in the call: nothing was sent. 75 is a task that waits for longer than --max-retry-after.

Usage:
  retry grpc [flags] host:port package.Service/Method

Examples:
  retry grpc -d '{"item": 3}' localhost:50051 shop.Orders/Create                      by the server's reflection
  retry grpc --idempotency-key order-17 -d @order.json grpcs://shop.example:443 shop.Orders/Create
  retry grpc --retry-on UNAVAILABLE,RESOURCE_EXHAUSTED -t 5s localhost:50051 shop.Orders/List
  retry grpc --data-raw @order.bin localhost:50051 shop.Orders/Create > reply.bin    without reflection
`

// grpcHelp is the help of shared flags that mean something else for a call.
func grpcHelp(name string) string {
	switch name {
	case "timeout":
		return "Stop an attempt that takes longer; the server is told as grpc-timeout."
	case "kill-after", "quiet":
		return httpHelp[name]
	case "retry-on":
		return "Retry these alone: UNAVAILABLE,ABORTED,14,dns,connect,tls,reset,timeout,faults,any, or an expression such as " +
			"'status == 14'. Default UNAVAILABLE, and what was not sent."
	case "idempotency-key":
		return "A key of your own, sent as metadata idempotency-key: it says that the server looks at it. Default a random one; " +
			"none sends none."
	case "idempotent":
		return "Two of these calls do what one does, so a lost reply is worth another attempt."
	}
	return ""
}

func (c *grpcCommand) Run(p *Process) (int, error) { return c.Wrap(&p.Host, c, false) }

// Check implements session.Work.
func (c *grpcCommand) Check(p *session.Host) (err error) {
	const hint = "\nhint: retry grpc [flags] host:port package.Service/Method"
	switch len(c.Words) {
	case 0:
		return errors.New("no server to call" + hint)
	case 1:
	case 2:
		c.method = c.Words[1]
	default:
		return fmt.Errorf("%s is one word too many"+hint, render.Command(c.Words[2:3]))
	}
	if err := c.CheckConditions(grpcexec.Kind); err != nil {
		return err
	}
	c.call, err = c.Build(c.Words[0], c.method, func(file string) ([]byte, error) {
		if !isStream(file) {
			return p.ReadFile(file, longestCall)
		}
		c.body = file
		return []byte("{}"), nil // it stands for what is read later
	})
	if err != nil {
		return err
	}
	c.call.Unread = c.body != ""
	return c.call.Check(func(name string) (string, bool) { return flags.LookUp(p.Environ, name) })
}

// longestCall is one byte more than a call may have, which is refused.
const longestCall = grpcexec.MaxMessage + 1

// isStream reports whether a file can be read only once, or may be one that can.
func isStream(name string) bool {
	info, err := os.Stat(name)
	return name == request.StdinFile || err == nil && (!info.Mode().IsRegular() || files.IsDescriptor(name))
}

// Fill implements session.Work.
func (c *grpcCommand) Fill(p *session.Host, t *task.Task) error {
	if n := t.Policy.Consecutive; n > 1 && !c.call.Safe() {
		return fmt.Errorf("--consecutive %d makes a successful call again, and it is not safe to repeat"+
			"\nhint: --idempotent says that it is", n)
	}
	t.Kind, t.Target = grpcexec.Kind, c.call
	if c.body != "" {
		p.NoteBody(c.body, t)
	}
	t.IdempotencyKey = c.OwnKey(c.call.AsRequest())
	t.Options.Capture = c.CaptureMode()
	return nil
}

// Read implements session.Work. The call as it was checked has no body yet.
func (c *grpcCommand) Read(p *session.Host, t *task.Task, before *task.Source) error {
	if c.body == "" {
		return nil
	}
	body, err := p.ReadBody(c.body, longestCall, t, before)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	c.call, err = c.Build(c.Words[0], c.method, func(string) ([]byte, error) {
		return io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
	})
	if err == nil {
		t.Target = c.call
	}
	return err
}

// ExecOptions implements session.Work.
func (c *grpcCommand) ExecOptions() session.ExecOptions { return session.ExecOptions{} }
