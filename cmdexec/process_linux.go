package cmdexec

import (
	"bytes"
	"os"
	"strconv"
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

// groupAlive reports whether a process of the group runs that is no zombie. kill(2) cannot tell: it counts zombies.
func groupAlive(pgid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil && runsInGroup(e.Name(), pgid) {
			return true
		}
	}
	return false
}

// runsInGroup reads state and process group from stat: "pid (name) state ppid pgrp …", where a name may hold anything.
func runsInGroup(pid string, pgid int) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 2 && string(fields[2]) == strconv.Itoa(pgid) && string(fields[0]) != "Z" && string(fields[0]) != "X"
}
