package cmdexec

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives the child a group of its own, unless it shares ours, and has it die with a killed retry.
func sysProcAttr(shared bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !shared, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}
