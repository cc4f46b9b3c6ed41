//go:build unix

package lock

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

func (o *Owners) flock(command int, kind int16, number int64) (unix.Flock_t, error) {
	lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: number, Len: 1}
	for {
		if err := unix.FcntlFlock(o.file.Fd(), command, &lock); err != unix.EINTR {
			return lock, err
		}
	}
}

// Acquire makes this process the task's owner; it reports false where another process is. A process does not exclude itself.
func (o *Owners) Acquire(number int64) (bool, error) {
	_, err := o.flock(unix.F_SETLK, unix.F_WRLCK, number)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// Release drops a lock that this process holds.
func (o *Owners) Release(number int64) error {
	_, err := o.flock(unix.F_SETLK, unix.F_UNLCK, number)
	return err
}

// Owner returns the process that owns the task; 0 where none does. It cannot see this process itself.
func (o *Owners) Owner(number int64) (pid int, err error) {
	lock, err := o.flock(unix.F_GETLK, unix.F_WRLCK, number)
	switch {
	case err != nil || lock.Type == unix.F_UNLCK:
		return 0, err
	case lock.Pid <= 0:
		return UnknownPID, nil // it is in another process namespace
	}
	return int(lock.Pid), nil
}
