//go:build !cgo || !unix

package cmdexec

import (
	"os/signal"
	"syscall"
)

// InheritedIgnored reports whether the process was started with the signal ignored.
func InheritedIgnored(sig syscall.Signal) bool {
	return signal.Ignored(sig)
}

func underInheritedMask(do func() error) error { return do() }

// DieOf returns: without C the caller exits with a status instead.
func DieOf(syscall.Signal) {}
