package cmdexec

import "golang.org/x/sys/unix"

// machine identifies what process numbers refer to: this boot.
func machine() string {
	boot, _ := unix.Sysctl("kern.bootsessionuuid")
	return boot
}

const stateZombie = 5 // SZOMB of <sys/proc.h>

// running returns the processes for which keep is true, without zombies.
func running(keep func(proc) bool) []proc {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var found []proc
	for i := range all {
		if p := procOf(&all[i]); !p.zombie && keep(p) {
			found = append(found, p)
		}
	}
	return found
}

func procOf(k *unix.KinfoProc) proc {
	pid := int(k.Proc.P_pid)
	sid, _ := unix.Getsid(pid)
	start := k.Proc.P_starttime
	return proc{
		pid: pid, group: int(k.Eproc.Pgid), session: sid, start: start.Sec*1e6 + int64(start.Usec),
		zombie: k.Proc.P_stat == stateZombie,
	}
}

// lookAt reads about a process; ok is false where it is gone.
func lookAt(pid int) (p proc, ok bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return p, false
	}
	return procOf(k), true
}

// environment is empty: the system shows none.
func (p proc) environment() []string { return nil }
