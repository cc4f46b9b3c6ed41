package proc

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives the child a group of its own, unless it shares ours. Only Linux can kill it together with retry.
func sysProcAttr(c *Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !c.SharedGroup}
}

const idTypePID = 1 // P_PID of <sys/wait.h>

// waitForEnd waits until the child has ended, and leaves it as a zombie.
func waitForEnd(pid int) {
	var info [128]byte // large enough for a siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idTypePID, uintptr(pid), uintptr(unsafe.Pointer(&info)),
			syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// machine identifies what process numbers refer to.
func machine() string { return Boot() }

// system is not known, and not needed: nothing has a boot of its own here.
func system() string { return "" }

func allProcesses() (all []info) {
	found, _ := unix.SysctlKinfoProcSlice("kern.proc.all")
	for i := range found {
		all = append(all, infoOf(&found[i]))
	}
	return all
}

// second is one in the unit of info.Start.
const second = 1e6

// clock returns the time in the unit of info.Start.
func clock() int64 { return time.Now().UnixMicro() }

// lookup describes a process; ok is false if there is none.
func lookup(pid int) (p info, ok bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return p, false
	}
	return infoOf(k), true
}

const stateZombie = 5 // SZOMB of <sys/proc.h>

func infoOf(k *unix.KinfoProc) info {
	pid := int(k.Proc.P_pid)
	session, _ := unix.Getsid(pid)
	start := k.Proc.P_starttime
	return info{
		Pid: pid, Group: int(k.Eproc.Pgid), Session: session, Start: start.Sec*1e6 + int64(start.Usec),
		parent: int(k.Eproc.Ppid), zombie: k.Proc.P_stat == stateZombie,
	}
}

// environment is empty: the system does not show it.
func (p info) environment() []string { return nil }

// isUnreadable is false: no process shows its environment, and none is known by it.
func (p info) isUnreadable() bool { return false }

// unsure returns no error: what has left the group is not known.
func (k token) unsure([]info, func(info) bool) error { return nil }

// Boot identifies this boot of the machine.
func Boot() string {
	boot, _ := unix.Sysctl("kern.bootsessionuuid")
	return boot
}

// HaveOpen is not known.
func HaveOpen(os.FileInfo) bool { return false }

// outlivedElse returns none: the rest is for Linux.
func outlivedElse() []syscall.Signal { return nil }

// askSignal is none: nothing has threads of one process stand still here while others go on.
const askSignal = syscall.Signal(0)

func ask() error { return nil }

// realTime returns none: the system has no such signals.
func realTime() []syscall.Signal { return nil }
