package grpcexec

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// exitBase is what is added to a status for the exit status, as in grpcurl.
const exitBase = 64

// failure describes an error for conditions, for the exit status, for the table of events and for people.
type failure struct {
	class  task.ErrorClass
	status code // for conditions; codeOK for none
	exit   int
	event  event
}

// classify judges an error by its type and by what was sent, never by its text.
func (a *attempt) classify(err error) failure {
	var local *localError
	var dialled *dialError
	var stream transport.StreamError
	lost := failure{task.ErrorReset, codeOK, exitBase + int(codeUnavailable), eventLost}
	unsent := failure{task.ErrorReset, codeUnavailable, exitBase + int(codeUnavailable), eventUnsent}
	switch {
	case errors.As(err, &local):
		return failure{task.ErrorLocal, codeOK, task.ExitInternal, eventLocal}
	case errors.As(err, new(*refusedError)):
		return failure{task.ErrorRefused, codeOK, task.ExitInternal, eventRefused}
	case errors.Is(err, errTooLarge):
		return failure{task.ErrorLocal, codeOK, exitBase + int(codeResourceExhausted), eventNotStored}
	case errors.Is(err, errUnreadable):
		return failure{task.ErrorLocal, codeOK, exitBase + int(codeInternal), eventNotStored}
	case transport.IsTimeout(err):
		f := failure{task.ErrorTimeout, codeDeadlineExceeded, exitBase + int(codeDeadlineExceeded), eventUnsent}
		if a.sent.Load() {
			f.event = eventLost
		}
		return f
	case errors.As(err, &dialled):
		return dialled.classify()
	case !a.sent.Load():
		return unsent
	case errors.As(err, &stream) && stream.Code == transport.Refused && a.firstByte.Load() == 0: // and has no reply begun
		unsent.event = eventUnprocessed
		return unsent
	}
	return lost
}

func (e *dialError) classify() failure {
	f := failure{task.ErrorConnect, codeUnavailable, exitBase + int(codeUnavailable), eventUnsent}
	var name *net.DNSError
	switch {
	case errors.As(e.cause, &name):
		f.class = task.ErrorDNS
		if name.IsNotFound {
			f.event = eventNoHost
		}
	case errors.Is(e.cause, errNotHTTP2):
		f.class, f.status, f.event = task.ErrorProtocol, codeOK, eventInvalid
	case e.step == stepTLS:
		f.class = task.ErrorTLS
		var alert *net.OpError
		if !transport.IsCut(e.cause) || errors.As(e.cause, &alert) && alert.Op == "remote error" {
			f.status, f.event = codeOK, eventInvalid
		}
	}
	return f
}

// outcome returns the outcome of an attempt that ended with err.
func (a *attempt) outcome(err error) task.Outcome {
	r := &task.Reply{MaxDelay: a.call.MaxServerDelay(), Phases: a.measured()}
	if a.sent.Load() {
		r.Written = 1
	}
	o := task.Outcome{Reply: r}
	var described *statusError
	var stop *runner.StopError
	answer, safe := a.reply, a.call.Safe()
	if errors.As(err, &described) {
		answer, safe, err = described.reply, true, nil // the call itself was not sent
		answer.text = strings.TrimPrefix(described.Error(), answer.code.String()+": ")
	}
	switch {
	case errors.As(err, &stop):
		o = stop.Outcome()
		o.Reply, r.Default = r, byDefault(eventUnsent, safe)
		if a.sent.Load() {
			r.Default = byDefault(eventLost, safe)
		}
	case err != nil:
		f := a.classify(err)
		o.Exit, o.Error, o.Message = f.exit, f.class, a.explained(err)
		if f.status != codeOK {
			r.Status, r.StatusName = int(f.status), f.status.String()
		}
		r.Default = byDefault(f.event, safe)
	default:
		r.Status, r.StatusName, r.Cut = int(answer.code), answer.code.String(), answer.broken
		if answer.code != codeOK {
			o.Exit, o.Message = exitBase+int(answer.code), statusMessage(answer)
		}
		r.Default = byDefault(eventOf(answer), safe)
	}
	if answer != nil {
		p := readPushback(answer.metadata)
		r.ServerDelay, r.NoRetry = p.delay, p.stop
		r.Header, r.Body = flat(answer.metadata), tail(a.shown)
	}
	return o
}

// statusMessage is a status for people.
func statusMessage(r *reply) string {
	if r.text == "" {
		return r.code.String()
	}
	return r.code.String() + ": " + r.text
}

// explained is an error for people, with what was being done.
func (a *attempt) explained(err error) string {
	switch {
	case errors.As(err, new(*refusedError)):
		return cause(err)
	case errors.As(err, new(*localError)), errors.As(err, new(*dialError)), errors.Is(err, errTooLarge),
		errors.Is(err, errUnreadable):
		return err.Error()
	case a.firstByte.Load() > 0:
		return "read the reply: " + cause(err)
	case a.sent.Load():
		return "wait for the reply: " + cause(err)
	}
	return "send the call: " + cause(err)
}

// cause describes the most frequent errors for people.
func cause(err error) string {
	var number syscall.Errno
	var lookup *net.DNSError
	var stream transport.StreamError
	var refused *refusedError
	var to *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.As(err, &stream):
		return stream.Error()
	case errors.As(err, &number) && errors.As(err, &to) && to.Addr != nil:
		return to.Addr.String() + ": " + number.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host: " + lookup.Name
	case errors.As(err, &lookup):
		return lookup.Err + ": " + lookup.Name
	case errors.As(err, new(tls.RecordHeaderError)):
		return "the server does not speak TLS"
	}
	return err.Error()
}

// flat returns metadata with the values of each name joined.
func flat(metadata http.Header) map[string]string {
	joined := make(map[string]string, len(metadata))
	for name, values := range metadata {
		joined[name] = strings.Join(values, ", ")
	}
	return joined
}

func tail(text []byte) string {
	return string(text[max(0, len(text)-task.ConditionTail):])
}
