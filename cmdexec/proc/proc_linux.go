package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives the child a group of its own, unless it shares ours, and kills it if retry is killed.
func sysProcAttr(shared bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !shared, Pdeathsig: syscall.SIGKILL}
}

// waitForEnd waits until the child has ended, and leaves it as a zombie.
func waitForEnd(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// machine identifies what process numbers refer to: this boot and this PID namespace.
func machine() string {
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return Boot() + " " + namespace
}

func allProcesses() (all []info) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, _ := strconv.Atoi(e.Name()) // there is no process 0
		if p, ok := lookup(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// Fields of /proc/PID/stat, counted after "pid (name)", since the name may contain anything.
const (
	statState   = 0
	statGroup   = 2
	statSession = 3
	statStart   = 19
)

// lookup describes a process; ok is false if there is none.
func lookup(pid int) (p info, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statStart {
		return p, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
	state := fields[statState][0]
	return info{
		Pid: pid, Group: int(number(statGroup)), Session: int(number(statSession)), Start: number(statStart),
		zombie: state == 'Z' || state == 'X',
	}, true
}

// environment returns the settings that the process was started with. It is empty for a process of another user.
func (p info) environment() []string {
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/environ")
	return strings.Split(string(environ), "\x00")
}

// Boot identifies this boot of the machine.
func Boot() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(boot))
}
