//go:build !cgo && unix

package proc

import (
	"os/signal"
	"syscall"
)

// InheritedIgnored reports whether the process was started with the signal ignored. Without C only HUP and INT are
// known.
func InheritedIgnored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// DieOf returns: the caller exits with a status instead.
func DieOf(syscall.Signal) {}

func withInheritedMask(do func() error) error { return do() }

func catchStops() (release func()) { return nothing }

func waitForEndOrStops(pid int, _ func() bool) { waitForEnd(pid) }
