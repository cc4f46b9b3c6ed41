package httpexec

import (
	"errors"
	"fmt"
	"net"

	"github.com/10f93571/retry/task"
)

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
