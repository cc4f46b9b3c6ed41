//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/state/lock"
)

// fewDescriptors is the limit below which the journal and a command with its pipes may not fit.
const fewDescriptors = 32

func (e *examiner) descriptors() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return
	}
	if limit.Cur < fewDescriptors {
		e.add("descriptors", LevelWarning, "raise the limit with ulimit -n", "only %d file descriptors may be open", limit.Cur)
		return
	}
	e.add("descriptors", LevelOK, "", "%d file descriptors", limit.Cur)
}

func writable(path string) bool {
	err := unix.Access(path, unix.W_OK)
	return err == nil || err == unix.EROFS // which is said of the file system
}

func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o044 != 0 }

// Where SQLite puts its locks: the writer's in the WAL's index, that of an exclusive user in the database itself.
const (
	writerByte    = 120
	exclusiveByte = 0x40000000
	exclusiveLen  = 512
)

// holder returns the process that keeps others from writing; 0 where none does. No connection of this process may be open: closing
// the files would drop its locks.
func holder(dir string) (pid int, err error) {
	database := filepath.Join(dir, databaseName)
	pid, err = locker(database, unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: exclusiveByte, Len: exclusiveLen})
	if pid != 0 || err != nil {
		return pid, err
	}
	return locker(database+shmSuffix, unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: writerByte, Len: 1})
}

func locker(path string, flock unix.Flock_t) (pid int, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe may be there
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &flock)
	switch {
	case err != nil || flock.Type == unix.F_UNLCK:
		return 0, err
	case flock.Pid <= 0:
		return lock.UnknownPID, nil
	}
	return int(flock.Pid), nil
}

// commandWidth is how much of a command line tells which it is.
const commandWidth = 50

// process names a process as far as the system tells.
func process(pid int) string {
	if pid == lock.UnknownPID {
		return "a process of another container"
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(line) == 0 {
		return fmt.Sprintf("process %d", pid)
	}
	words := []rune(strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " "))
	if len(words) > commandWidth {
		words = append(words[:commandWidth], '…')
	}
	return fmt.Sprintf("process %d (%s)", pid, string(words))
}
