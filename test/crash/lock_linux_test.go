package crash

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// takeLock takes the lock that the children of a task, or of a name, exclude each other with; the process keeps it to its end. It returns who is
// alive beside this process. A process that was killed and holds the lock for a last moment is not: it runs nothing any more.
func takeLock(path string) (other string) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		panic(err)
	}
	alive := 0
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return ""
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			panic(err)
		}
		if pid := lockHolder(fd); pid > 0 && !dying(pid) {
			// Between taking the signal and leaving, a process shows neither: look again.
			if alive++; alive == 5 {
				return "process " + strconv.Itoa(pid)
			}
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// lockHolder returns the process that holds a flock on the file; 0 where none does.
func lockHolder(fd int) int {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		panic(err)
	}
	inode := fmt.Sprintf(":%d", stat.Ino)
	locks, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 00:2a:1234 0 EOF
		f := strings.Fields(line)
		if len(f) > 5 && f[1] == "FLOCK" && strings.HasSuffix(f[5], inode) {
			pid, _ := strconv.Atoi(f[4])
			return pid
		}
	}
	return 0
}

// dying reports whether a process will run no instruction of its own any more: it is gone, leaving, or SIGKILL is pending.
func dying(pid int) bool {
	const leaving = 0x4 // PF_EXITING of linux/sched.h
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if flags, _ := strconv.Atoi(fields[6]); flags&leaving != 0 {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if name == "SigPnd" || name == "ShdPnd" {
			if pending, _ := strconv.ParseUint(value, 16, 64); pending&(1<<(syscall.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}
