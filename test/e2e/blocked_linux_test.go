package e2e

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	commands["blocking"] = becomeBlocked
}

// becomeBlocked becomes the program that its arguments name, with every signal blocked. What a thread blocks stays blocked in the
// process that it becomes.
func becomeBlocked() {
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		runtime.LockOSThread()
		var all unix.Sigset_t
		all.Val[0] = ^uint64(3 << 31) // but 32 and 33, which the C library keeps for itself
		if err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err == nil {
			err = syscall.Exec(path, os.Args[1:], os.Environ())
		}
	}
	panic(err)
}
