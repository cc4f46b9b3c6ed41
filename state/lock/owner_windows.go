package lock

import (
	"errors"

	"golang.org/x/sys/windows"
)

func at(number int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(number), OffsetHigh: uint32(number >> 32)}
}

// Acquire makes this process the task's owner; it reports false where another process is.
func (o *Owners) Acquire(number int64) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(o.file.Fd()), flags, 0, 1, 0, at(number))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// Release drops a lock that this process holds.
func (o *Owners) Release(number int64) error {
	return windows.UnlockFileEx(windows.Handle(o.file.Fd()), 0, 1, 0, at(number))
}

// Owner returns UnknownPID where the task has an owner, else 0.
func (o *Owners) Owner(number int64) (pid int, err error) {
	free, err := o.Acquire(number)
	if err != nil || !free {
		return UnknownPID, err
	}
	return 0, o.Release(number)
}
