//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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

func locker(path string, lock unix.Flock_t) (pid int, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe may be there
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock)
	switch {
	case err != nil || lock.Type == unix.F_UNLCK:
		return 0, err
	case lock.Pid <= 0:
		return unknownPID, nil
	}
	return int(lock.Pid), nil
}

// directoryHolder names the process that lets nobody open a journal in a directory; empty where none does.
func directoryHolder(dir string) string {
	f, err := openForLock(dir)
	if err != nil {
		return "" // without the right to read it nobody locks it
	}
	defer func() { _ = f.Close() }()
	if !errors.Is(tryLock(f, false), errHeld) {
		return ""
	}
	var stat unix.Stat_t
	locks, _ := os.ReadFile("/proc/locks") // Linux alone has it
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return "another process"
	}
	if pid := flocker(string(locks), stat.Ino); pid > 0 {
		return process(pid)
	}
	return "another process"
}

// flocker finds the process that has locked a file alone, in lines such as "3: FLOCK ADVISORY WRITE 4711 fe:00:262147 0 EOF"; 0
// where none is shown. The device is left out: a file system such as btrfs has another one for its locks than for its files.
func flocker(locks string, inode uint64) (pid int) {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], fmt.Sprintf(":%d", inode)) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil {
			return pid
		}
	}
	return 0
}

// commandWidth is how much of a command line tells which it is.
const commandWidth = 50

// process names a process as far as the system tells.
func process(pid int) string {
	if pid == unknownPID {
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
