//go:build !linux

package proc

import "github.com/10f93571/retry/task"

// Guard is a process that only Linux has: elsewhere nothing shows what is left of an attempt.
type Guard struct{}

// StartGuard starts none.
func StartGuard([]uintptr, *task.Task, int) *Guard { return nil }

// Note does nothing.
func (*Guard) Note(string) {}

// Dismiss does nothing.
func (*Guard) Dismiss() {}

// Close does nothing.
func (*Guard) Close() {}
