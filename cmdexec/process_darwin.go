package cmdexec

import (
	"syscall"
	"unsafe"
)

// sysProcAttr gives the child a group of its own, unless it shares ours. Only Linux can have it die with a killed retry.
func sysProcAttr(shared bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !shared}
}

const idTypePID = 1 // P_PID of <sys/wait.h>

// awaitExit returns when the child has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	var info [128]byte // room for a siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idTypePID, uintptr(pid), uintptr(unsafe.Pointer(&info)),
			syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
