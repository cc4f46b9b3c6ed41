package httpexec

import "net"

// localError is a fault of this machine: another attempt would meet it again.
type localError struct {
	operation string
	cause     error
	exit      int
}

func (e *localError) Error() string { return e.operation + ": " + e.cause.Error() }
func (e *localError) Unwrap() error { return e.cause }

// join is net.JoinHostPort.
func join(host, port string) string { return net.JoinHostPort(host, port) }
