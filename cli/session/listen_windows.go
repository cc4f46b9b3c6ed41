package session

import (
	"syscall"
)

var forwarded = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}

// WakeSignal is none that Windows has: a retry that waits looks into its journal after a while.
const WakeSignal = syscall.Signal(0)

var inheritable []syscall.Signal

// descriptors has no limit that a user sets.
func descriptors() int { return 1 << 30 }

// CheckDescriptors accepts everything: Windows has no limit that a user sets.
func CheckDescriptors() error { return nil }
