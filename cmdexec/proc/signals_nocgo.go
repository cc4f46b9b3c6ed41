//go:build !cgo && unix

package proc

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/10f93571/retry/task"
)

// InheritedIgnored reports whether the process was started with the signal ignored. Without C only HUP and INT are
// known.
func InheritedIgnored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// DieOf exits with the status that stands for the signal.
func DieOf(sig syscall.Signal) { os.Exit(task.ExitSignalBase + int(sig)) }

func endedChild() int { return 0 }

func withInheritedMask(do func() error) error { return do() }

func catchStops() (release func()) { return nothing }

func waitForEndOrStops(pid int, _ func() bool) { waitForEnd(pid) }
