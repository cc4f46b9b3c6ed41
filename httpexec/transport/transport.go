// Package transport tells the errors of net/http's transport apart, for requests and for gRPC calls.
package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/10f93571/retry/runner"
)

// StreamError has the fields of net/http's error for a stream of HTTP/2 that was reset. That error has a method As, which
// fills any type with these fields.
type StreamError struct {
	StreamID uint32
	Code     Code
	Cause    error
}

// Code is why a stream was reset: RFC 9113, section 7.
type Code uint32

// Refused says that the server did not process the request: RFC 9113, section 8.7.
const Refused Code = 7

// Error implements error.
func (e StreamError) Error() string {
	if e.Code == Refused {
		return "the server refused the request (REFUSED_STREAM)"
	}
	return fmt.Sprintf("HTTP/2 stream reset with code %d", e.Code)
}

// Explain returns the cause of the context's end if that is what led to an error.
func Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // the network has timers of its own, which may be faster
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// IsTimeout reports whether an error comes from a limit of retry, or from one of the system.
func IsTimeout(err error) bool {
	for _, limit := range []error{runner.ErrTimeout, runner.ErrBudgetEnd, context.DeadlineExceeded, syscall.ETIMEDOUT} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// IsCut reports whether a connection ended.
func IsCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError))
}
