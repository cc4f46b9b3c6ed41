package httpexec

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/task"
)

// classify judges an error by its type and by the stage of the request, never by its text.
func (a *attempt) classify(err error) failure {
	var local *localError
	var refused *refusedError
	switch at := a.tracer.at(); {
	case errors.As(err, &local):
		return failure{task.ErrorLocal, local.exit, EventLocal, local.Error()}
	case errors.As(err, &refused):
		return failure{task.ErrorRefused, exitConnect, EventRefused, refused.Error()}
	case errors.Is(err, request.ErrReference):
		return failure{task.ErrorLocal, task.ExitInternal, EventLocal, err.Error()}
	case errors.Is(err, errRedirects), errors.Is(err, request.ErrURL), errors.Is(err, request.ErrHead),
		errors.Is(err, errProxy), errors.Is(err, errResolve):
		return classifyInput(err)
	case transport.IsTimeout(err):
		return failure{task.ErrorTimeout, exitTimeout, a.event(), ""}
	case errors.Is(err, context.Canceled):
		return failure{task.ErrorReset, exitReceive, a.event(), "cancelled"}
	case at <= stageConnect:
		return a.classifyConnect(err)
	case at == stageProxy && a.tracer.socks:
		return failure{task.ErrorConnect, exitProxy, EventUnsent, ""}
	case at == stageProxy:
		return failure{task.ErrorConnect, exitReceive, EventUnsent, ""}
	case at == stageTLS:
		return classifyTLS(err)
	case at < stageBody && isAlert(err): // in TLS 1.3 a server may refuse the client after the handshake
		return failure{task.ErrorTLS, exitReceive, EventInvalid, ""}
	case !a.tracer.sent():
		return failure{task.ErrorReset, exitSend, EventUnsent, ""}
	case at == stageBody:
		return classifyBody(err)
	default:
		return a.classifyReply(err)
	}
}

// event returns the event of an attempt that was ended by a timeout or a signal.
func (a *attempt) event() Event {
	switch {
	case !a.tracer.sent():
		return EventUnsent
	case a.tracer.at() == stageBody:
		return EventCut
	}
	return EventLost
}

// classifyInput is for errors in the request, in a redirect or in the settings of the network.
func classifyInput(err error) failure {
	class, exit := task.ErrorURL, exitURL
	if errors.Is(err, errRedirects) {
		class = task.ErrorRedirects
	}
	switch {
	case errors.As(err, new(*request.SchemeError)):
		exit = exitScheme
	case errors.As(err, new(*loopError)):
		exit = exitRedirects
	case errors.Is(err, errProxy):
		exit = exitProxyName
	case errors.Is(err, errResolve):
		exit = exitResolve
	}
	return failure{class, exit, EventInvalid, ""}
}

func (a *attempt) classifyConnect(err error) failure {
	var name *net.DNSError
	if !errors.As(err, &name) {
		return failure{task.ErrorConnect, exitConnect, EventUnsent, ""}
	}
	f := failure{task.ErrorDNS, exitDNS, EventUnsent, ""}
	if a.tracer.viaProxy {
		f.exit = exitProxyName
	}
	if name.IsNotFound {
		f.event, f.cause = EventNoHost, "no such host: "+name.Name
	}
	return f
}

// classifyTLS treats a handshake that was cut as a failure that may pass, and every other as permanent.
func classifyTLS(err error) failure {
	f := failure{task.ErrorTLS, exitTLS, EventInvalid, ""}
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		f.exit = exitUntrusted
	case errors.As(err, new(tls.RecordHeaderError)):
		f.cause = "the server does not speak TLS"
	case transport.IsCut(err) && !isAlert(err):
		f.event = EventUnsent
	}
	return f
}

// errNoStatus says that a reply has a status such as 000, which net/http accepts.
var errNoStatus = errors.New("the reply is not HTTP")

// classifyReply is for errors between the request and the end of the reply's header.
func (a *attempt) classifyReply(err error) failure {
	f := failure{task.ErrorReset, exitReceive, EventLost, ""}
	var stream transport.StreamError
	switch {
	case errors.Is(err, errNoStatus):
		f.class, f.exit, f.event = task.ErrorProtocol, exitNotHTTP, EventNotHTTP
	case errors.As(err, &stream):
		f.exit = exitStream
		if stream.Code == transport.Refused {
			f.event = EventUnprocessed
		}
	case a.tracer.at() == stageWait && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		f.exit = exitEmpty
	case transport.IsCut(err) && !errors.Is(err, net.ErrClosed): // net/http closes a connection itself because of what it has read
	case a.tracer.http2: // before readErr: net/http goes on reading such a connection after the error
		f.exit = exitHTTP2
	case a.tracer.conn.readErr.Load() != nil: // net/http took half a line for a whole one
		f.cause = cause(*a.tracer.conn.readErr.Load())
	case a.tracer.received() >= maxHeader:
		f.class, f.event, f.cause = task.ErrorProtocol, EventNotHTTP, "it has no end within 300 KiB"
	default:
		f.class, f.exit, f.event, f.cause = task.ErrorProtocol, exitNotHTTP, EventNotHTTP, "the reply is not HTTP"
	}
	return f
}

func classifyBody(err error) failure {
	f := failure{task.ErrorTruncated, exitReceive, EventCut, ""}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errNoCloseNotify), errors.As(err, new(download.RangeError)):
		f.exit = exitCut
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)),
		errors.Is(err, errCoding):
		f.exit = exitEncoding
	case errors.Is(err, errUnsent):
		f.exit = exitSend
	case errors.As(err, new(transport.StreamError)):
		f.exit = exitStream
	}
	return f
}

// failure describes an error for conditions, for the exit code, for the table of events and for people.
type failure struct {
	class task.ErrorClass
	exit  int
	event Event
	cause string // for people; empty: the text of the error
}

// loopError says that there were more redirects than may be followed.
type loopError struct{ followed int }

func (e *loopError) Error() string {
	return fmt.Sprintf("%d redirects were followed, and there is another", e.followed)
}

func (e *loopError) Unwrap() error { return errRedirects }

// isAlert reports whether the other end refused TLS.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// errNoCloseNotify says that a body which ends with the connection was cut.
var errNoCloseNotify = errors.New("the connection was closed without a close_notify of TLS")

// errCoding says that --compressed has got a body that it cannot unpack.
var errCoding = errors.New("unknown Content-Encoding")

// errLength says that the header of a reply in HTTP/2 does not tell one length of its body.
var errLength = errors.New("its header does not say how long it is")

// errOldChunks says that a reply in HTTP/1.0 has a Transfer-Encoding, which that does not know: net/http ignores it, and
// the body would have the sizes of the chunks in it (RFC 9112, section 6.1).
var errOldChunks = errors.New("it is in chunks, which HTTP/1.0 does not know")

// errUnsent says that a server has replied with success before it had all of the request, and did not take the rest.
var errUnsent = errors.New("the reply came before all of the request was sent, and the rest was not")

// localError is a failure of this machine. Another attempt would fail in the same way.
type localError struct {
	operation string
	cause     error
	exit      int
}

func (e *localError) Error() string { return e.operation + ": " + e.cause.Error() }

func (e *localError) Unwrap() error { return e.cause }

// The exit codes of curl for what can go wrong.
const (
	exitScheme     = 1
	exitURL        = 3
	exitProxyName  = 5
	exitDNS        = 6
	exitConnect    = 7
	exitNotHTTP    = 8
	exitHTTP2      = 16
	exitCut        = 18
	exitStatus     = 22
	exitWrite      = 23
	exitRead       = 26
	exitTimeout    = 28
	exitTLS        = 35
	exitRedirects  = 47
	exitResolve    = 49
	exitEmpty      = 52
	exitSend       = 55
	exitReceive    = 56
	exitClientCert = 58
	exitUntrusted  = 60
	exitEncoding   = 61
	exitCACert     = 77
	exitStream     = 92
	exitProxy      = 97
)
