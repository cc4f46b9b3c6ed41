//go:build unix

package lock

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/state"
)

func homePlace(getenv func(string) string) (Place, error) {
	switch {
	case filepath.IsAbs(getenv("HOME")):
		return Place{filepath.Join(getenv("HOME"), ".local", "state", "retry"), "HOME"}, nil
	case os.Geteuid() == 0:
		return Place{"/var/lib/retry", "root without a home"}, nil
	}
	return Place{}, errors.New("HOME is not set\nhint: set RETRY_STATE_DIR or give --state DIR")
}

// checkHome refuses a default place in another user's home, as under sudo: a directory that root creates there would
// keep that user from having a journal.
func checkHome(place Place) error {
	path, info, err := Nearest(place.Dir)
	if err != nil {
		return nil // CreateDir reports the error
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid() {
		return nil
	}
	return state.NewFault(state.ErrForeignHome,
		"sudo -H sets the home; or name a directory of your own with --state or RETRY_STATE_DIR",
		"%s leads to %s, which belongs to user %d, not to you (%d)", place.Source, path, stat.Uid, os.Geteuid())
}

// CheckOwner refuses a file that another user owns or may write: that user could make a resume run any command.
func CheckOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) != os.Geteuid():
		return state.NewFault(state.ErrOwner, "chown it, or use a directory of your own with --state",
			"%s belongs to user %d, not to you (%d)", path, stat.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return state.NewFault(state.ErrMode, "chmod go-w "+path,
			"%s may be written by others (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// Writable reports whether the mode of a file lets this process write, even on a read-only file system.
func Writable(path string) bool {
	err := unix.Access(path, unix.W_OK)
	return err == nil || errors.Is(err, unix.EROFS)
}

// leastDescriptors are eight for the journal, and those for a command with its pipes.
const leastDescriptors = 24

// CheckDescriptors refuses a journal if its files could leave too few descriptors to start the command. Go's runtime
// aborts if it gets none for its poller.
func CheckDescriptors() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= leastDescriptors {
		return nil
	}
	return state.NewFault(state.ErrNoFiles, "raise the limit with ulimit -n, or keep no journal with --no-state",
		"%d file descriptors are too few for it and a command", limit.Cur)
}

func openForLock(dir string) (*os.File, error) { return os.Open(dir) }

// tryLock locks a directory with flock, or returns errHeld.
func tryLock(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// Acquire makes this process the owner, or reports false if another process is. A process may acquire a number twice.
func (o *Owners) Acquire(number int64) (bool, error) {
	err := o.lock(unix.F_SETLK, unix.F_WRLCK, number)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err == nil {
		o.own.Store(number, nil)
	}
	return err == nil, err
}

// Release ends the ownership.
func (o *Owners) Release(number int64) error {
	o.own.Delete(number)
	return o.lock(unix.F_SETLK, unix.F_UNLCK, number)
}

func (o *Owners) lock(command int, kind int16, number int64) error {
	return fcntl(o.file.Fd(), command, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: number, Len: 1})
}

// Owner returns the other process that owns a number; 0 if none does.
func (o *Owners) Owner(number int64) (pid int, err error) {
	return holder(o.file, unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: number, Len: 1})
}

// Blocker returns the process whose lock keeps others from locking some bytes of a file; 0 if none does. It takes no
// lock.
func Blocker(path string, write bool, start, length int64) (pid int, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe may be there
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	wanted := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: start, Len: length}
	if write {
		wanted.Type = unix.F_WRLCK
	}
	return holder(f, wanted)
}

// holder returns the process whose lock conflicts with the wanted one.
func holder(f *os.File, wanted unix.Flock_t) (pid int, err error) {
	err = fcntl(f.Fd(), unix.F_GETLK, &wanted)
	switch {
	case err != nil || wanted.Type == unix.F_UNLCK:
		return 0, err
	case wanted.Pid <= 0:
		return UnknownPID, nil // it is in another process namespace
	}
	return int(wanted.Pid), nil
}

func fcntl(fd uintptr, command int, lock *unix.Flock_t) error {
	for {
		if err := unix.FcntlFlock(fd, command, lock); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Queue waits until this process is the first of the waiting writers, or until the context ends. The kernel serves them
// in their order; polling SQLite's lock, which protects the database, would not. Call done after the write.
func (o *Owners) Queue(ctx context.Context) (done func()) {
	leave := func() { _ = o.Release(queueLock) }
	if owned, err := o.Acquire(queueLock); owned || err != nil {
		return leave
	}
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		o.mutex.Lock()
		fd, closed := o.file.Fd(), o.closed
		o.mutex.Unlock()
		if !closed {
			_ = fcntl(fd, unix.F_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: queueLock, Len: 1})
		}
	}()
	select {
	case <-granted:
		return leave
	case <-ctx.Done():
		go func() { // a wait in the kernel cannot be interrupted: release the lock when it is granted
			<-granted
			o.mutex.Lock()
			defer o.mutex.Unlock()
			if !o.closed {
				leave()
			}
		}()
		return func() {}
	}
}
