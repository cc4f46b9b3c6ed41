package httpexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/10f93571/retry/runner"
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

// streamError has the fields of net/http's error for a stream of HTTP/2 that was reset. That error has a method As,
// which fills any type with these fields.
type streamError struct {
	StreamID uint32
	Code     streamCode
	Cause    error
}

type streamCode uint32

func (e streamError) Error() string {
	if e.Code == refusedStream {
		return "the server refused the request unseen"
	}
	return fmt.Sprintf("HTTP/2 stream reset with code %d", e.Code)
}

// refusedStream says that the server did not process the request: RFC 9113, section 8.7.
const refusedStream streamCode = 7

// explain returns the cause of the context's end if that is what led to an error.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // the network has timers of its own, which may be faster
	}
	if ctx.Err() != nil && !errors.As(err, new(*localError)) {
		return context.Cause(ctx)
	}
	return err
}

// isTimeout reports whether an error comes from a limit of retry, or from one of the system.
func isTimeout(err error) bool {
	for _, limit := range []error{runner.ErrTimeout, runner.ErrBudgetEnd, context.DeadlineExceeded, syscall.ETIMEDOUT} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// isAlert reports whether the other end refused TLS.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// isCut reports whether a connection ended.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError))
}

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
