package httpexec

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// outcome returns the outcome of an attempt that ended with err at the time now.
func (a *attempt) outcome(err error, now time.Time) task.Outcome {
	o, event := a.judge(err)
	after := readRetryAfter(a.reply.header, now)
	facts := factsOf(a.reply.header, after)
	facts.Redirected, facts.Unmet = a.redirected, a.isUnmet()
	o.Reply = &task.Reply{
		Status: a.reply.status, Header: a.reply.flat(), Body: a.reply.tail(task.ConditionTail), Written: a.written,
		ServerDelay: after.Delay, MaxDelay: a.maxDelay, Phases: a.tracer.measured(),
		Default: Default(event, a.Safety, facts), Cut: err != nil && o.Error == task.ErrorNone,
	}
	return o
}

// judge says how an attempt ended. A status of 400 or more matters more than an error while its body was read.
func (a *attempt) judge(err error) (task.Outcome, Event) {
	status := a.reply.status
	answered := a.tracer.at() == stageBody && status >= 400 &&
		!errors.As(err, new(*localError)) && !errors.As(err, new(download.RangeError))
	var stop *runner.StopError
	switch {
	case errors.As(err, &stop) && answered:
		return stop.Outcome(), StatusEvent(status)
	case errors.As(err, &stop):
		return stop.Outcome(), a.event()
	case answered:
		return task.Outcome{Exit: exitStatus, Message: statusMessage(status, err)}, StatusEvent(status)
	case err == nil && a.isUnmet():
		why := ", which is not followed"
		if status == http.StatusNotModified {
			why = ", which nobody has asked for"
		}
		return task.Outcome{Exit: exitStatus, Message: statusMessage(status, nil) + why}, StatusEvent(status)
	case err == nil:
		return task.Outcome{}, StatusEvent(status)
	}
	f, at := a.classify(err), a.tracer.at()
	if f.event == EventLocal && at == stageBody && status < 400 {
		f.event = EventNotStored // the server has done what it was asked for
	}
	if at > stageSend && !a.tracer.sent() {
		at = stageSend
	}
	return task.Outcome{Exit: f.exit, Error: f.class, Message: f.message(a.tracer, at, err)}, f.event
}

// isUnmet reports whether a request of the API got a redirect that is not followed, or an offer of another protocol. On
// the command line that is a success, as with curl. A service would tell its client that a call was delivered which
// was not: a webhook whose receiver has moved from http to https.
func (a *attempt) isUnmet() bool {
	status := a.reply.status
	if status == http.StatusNotModified { // which gives the file of -o nothing
		return a.request.Output != "" && !a.isConditional()
	}
	return a.request.Guarded && status >= 100 && status < 400 && status/100 != 2
}

// message says what went wrong and, for errors of the network, at which stage.
func (f failure) message(w *tracer, at stage, err error) string {
	switch {
	case f.event == EventLocal, f.event == EventNotStored, f.event == EventRefused:
		return f.cause
	case f.class == task.ErrorURL, f.class == task.ErrorRedirects:
		return err.Error()
	case f.cause == "":
		f.cause = cause(err)
	}
	the := ""
	if w.viaProxy {
		the = "the proxy "
	}
	to := dialled(err)
	switch {
	case at == stageConnect && to != nil:
		return fmt.Sprintf("connect to %s%s: %s", the, to, f.cause)
	case at == stageDNS && w.viaProxy:
		return "look up the proxy: " + f.cause
	}
	return doing(at) + f.cause
}

// dialled returns the address that an error is about. net/http wraps that of a proxy in an error without an address.
func dialled(err error) net.Addr {
	for to := (*net.OpError)(nil); errors.As(err, &to); err = to.Err {
		if to.Addr != nil {
			return to.Addr
		}
	}
	return nil
}

func statusMessage(status int, err error) string {
	text := fmt.Sprintf("status %d", status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	if err != nil {
		text += ", and its body was cut"
	}
	return text
}

// doing names a stage for a message.
func doing(at stage) string {
	return map[stage]string{
		stageDNS: "look up the host: ", stageConnect: "connect: ", stageProxy: "connect through the proxy: ",
		stageTLS: "TLS handshake: ", stageSend: "send the request: ", stageWait: "wait for the reply: ",
		stageHeader: "read the reply's header: ", stageBody: "read the reply: ",
	}[at]
}

// cause describes the most frequent errors for people.
func cause(err error) string {
	var number syscall.Errno
	var lookup *net.DNSError
	var stream transport.StreamError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.As(err, &stream):
		return stream.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &lookup):
		return lookup.Err + ": " + lookup.Name
	}
	return err.Error()
}
