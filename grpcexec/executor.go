package grpcexec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/grpcexec/dynamic"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Executor makes the call of a task. The task says what is sent; the fields say what this process adds. With a Pool and
// without Stdout it keeps nothing between attempts, and is safe for concurrent use.
type Executor struct {
	Pool      *Pool                                     // shared by the tasks of a worker; nil: one of its own
	Lookup    func(name string) (value string, ok bool) // the environment, for {env:NAME}
	UserAgent string                                    // "retry/1.0"
	MaxReply  int                                       // bytes of a reply; 0 = MaxMessage
	Stdout    io.Writer                                 // where a reply is written; nil: nowhere

	// GuardedLookup finds the variables that a guarded call may name; nil: none.
	GuardedLookup func(name string) (value string, ok bool)
	// Address adds to the metadata of an attempt, or changes it; nil: nothing.
	Address func(t *task.Task, attempt int, header http.Header)

	last []byte // for Flush
}

// attempt is one call under way.
type attempt struct {
	*Executor
	call       *Call
	refs       *request.References
	connection *connection // nil before there is one
	used       bool        // something was sent on it
	sent       atomic.Bool // the server may have received a part of the call
	written    atomic.Int64
	firstByte  atomic.Int64
	phases     task.Phases
	reply      *reply // nil for none
	shown      []byte // of the reply, as people see it
}

// Execute implements runner.Executor. When ctx ends first, the server is told to stop.
func (e *Executor) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	begun := time.Now()
	ctx, stopListening := runner.WithSignals(ctx, c.Signals)
	if e.Pool == nil {
		e.Pool = &Pool{}
	}
	a := &attempt{Executor: e, call: Of(t), refs: &request.References{Lookup: e.Lookup}}
	if a.call.Guarded {
		a.refs.Lookup = e.GuardedLookup
	}
	err := a.run(ctx, t, c.Number)
	if !errors.As(err, new(*localError)) && !errors.As(err, new(*statusError)) {
		err = transport.Explain(ctx, err)
	}
	sig := stopListening()
	o := a.outcome(err)
	// The journal and the line of an attempt have room for one line.
	o.Message = strings.ReplaceAll(a.refs.Clean(o.Message), "\nhint: ", "; ")
	o.Stop = sig
	o.Duration = time.Since(begun)
	o.Reply.Phases.Total = o.Duration
	if e.Stdout != nil {
		e.last = a.shown
	}
	if t.Options.Capture == task.CaptureBoth && !a.call.Raw {
		shown := text.MaskPattern(a.refs.Clean(string(a.shown)), t.Options.Mask)
		o.Stdout = shown[max(0, len(shown)-task.StoredTail):]
	}
	return o
}

// run makes the call, and reads the reply.
func (a *attempt) run(ctx context.Context, t *task.Task, number int) error {
	header, err := a.call.metadata(a.refs, http.Header{"User-Agent": {a.UserAgent}})
	if err == nil && a.call.Guarded {
		err = a.guard()
	}
	if err != nil {
		return &localError{err}
	}
	at := a.call.at()
	to := place{at.Host, at.Scheme == "grpcs", a.call.Guarded, a.call.Network}
	if a.connection, err = a.Pool.get(ctx, to, !a.call.Safe()); err != nil {
		var failed *dialError
		if errors.As(err, &failed) {
			a.phases = failed.phases
		}
		return err
	}
	defer func() {
		if !a.used {
			a.connection.Release()
		}
		a.Pool.release(a.connection, a.reply != nil || !a.used)
	}()
	a.phases = a.Pool.takePhases(a.connection)
	message, method := a.call.Message, (*dynamic.Method)(nil)
	if !a.call.Raw {
		if message, method, err = a.encode(ctx, header); err != nil {
			return err
		}
	}
	a.used = true
	if t.IdempotencyKey != "" && a.call.SendsKey() && header.Get(KeyName) == "" { // the questions before do not have it
		header.Set(KeyName, request.Styled(t.IdempotencyKey, a.call.KeyStyle))
	}
	if a.Address != nil {
		a.Address(t, number, header)
	}
	most := a.MaxReply
	if most == 0 {
		most = MaxMessage
	}
	a.reply, err = exchange(httptrace.WithClientTrace(ctx, a.trace()), a.connection, at.Path, header, message, most)
	if err == nil && a.reply.code == codeDeadlineExceeded && pastDeadline(ctx) {
		return context.DeadlineExceeded // the server was told when, and its answer came with the end of the time
	}
	if err != nil || a.reply.code != codeOK {
		return err
	}
	return a.show(method)
}

// pastDeadline reports whether the time of the attempt is over, even if its context has not ended yet.
func pastDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// guard refuses what only a user of this machine may: a socket, or a file.
func (a *attempt) guard() error {
	n := a.call.Network
	switch {
	case a.Pool.Control == nil:
		return errors.New("it came through the API: only a worker may make the call")
	case n.UnixSocket+n.CACert+n.Cert+n.Key != "":
		return errors.New("it came through the API and names a socket or a file")
	}
	return nil
}

// encode makes a message of the call's JSON, by the types that the server describes.
func (a *attempt) encode(ctx context.Context, header http.Header) ([]byte, *dynamic.Method, error) {
	a.used = true
	method, err := a.Pool.schema(ctx, a.connection, a.call, header)
	if err != nil {
		return nil, nil, err
	}
	body := a.call.JSON
	if body == "" {
		body = "{}"
	}
	message, err := method.Input.Encode([]byte(body))
	if err == nil && len(message) > MaxMessage {
		err = fmt.Errorf("the request has %s, and servers take up to %s", text.Size(int64(len(message))), text.Size(MaxMessage))
	}
	if err != nil {
		return nil, nil, &localError{err}
	}
	return message, method, nil
}

// errUnreadable says that a reply does not fit the types that the server described. The call took effect.
var errUnreadable = errors.New("the reply cannot be shown")

// show makes text of the reply: JSON, unless an encoded message was sent.
func (a *attempt) show(method *dynamic.Method) error {
	if method == nil {
		a.shown = a.reply.message
		return nil
	}
	line, err := method.Output.Decode(a.reply.message)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", "  "); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	a.shown = append(b.Bytes(), '\n')
	return nil
}

// trace returns the hooks of net/http. The hook WroteHeaders is too late for sent: it is called after the headers have
// gone out, perhaps after the reply.
func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) {
			if a.sent.CompareAndSwap(false, true) {
				a.written.Store(time.Now().UnixNano())
			}
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { a.written.Store(time.Now().UnixNano()) },
		GotFirstResponseByte: func() { a.firstByte.Store(time.Now().UnixNano()) },
	}
}

func (a *attempt) measured() task.Phases {
	phases := a.phases
	if first := a.firstByte.Load(); first > 0 {
		phases.FirstByte = max(0, time.Duration(first-a.written.Load()))
	}
	return phases
}

// HoldsOutput implements runner.Executor.
func (e *Executor) HoldsOutput(*task.Task) bool { return e.Stdout != nil }

// Flush implements runner.Executor. It writes the reply of a task that has succeeded.
func (e *Executor) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	last := e.last
	e.last = nil
	if e.Stdout == nil || len(last) == 0 || !t.Status.Finished() {
		return nil, nil
	}
	copied := make(chan error, 1)
	go func() {
		_, err := e.Stdout.Write(last)
		copied <- err
	}()
	for {
		select {
		case err := <-copied:
			return nil, err
		case sig := <-signals:
			if task.Stops(sig) {
				return sig, task.ErrStopped
			}
		}
	}
}

// Close closes the executor's connections, unless it shares them.
func (e *Executor) Close() {
	if e.Pool != nil {
		e.Pool.Close()
	}
}
