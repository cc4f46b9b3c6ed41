package cmdexec

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
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

const stateZombie = 5 // SZOMB of <sys/proc.h>

// groupAlive reports whether a process of the group runs that is no zombie.
func groupAlive(pgid int) bool {
	members, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Proc.P_stat != stateZombie {
			return true
		}
	}
	return false
}
