package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives the child a group of its own, unless it shares ours, and kills it if retry is killed.
func sysProcAttr(c *Command) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: !c.SharedGroup, Pdeathsig: syscall.SIGKILL}
	if c.Guarded {
		attr.Pdeathsig = 0
	}
	return attr
}

// waitForEnd waits until the child has ended, and leaves it as a zombie.
func waitForEnd(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// machine identifies what the numbers and the start times of processes refer to: this boot and these namespaces. It is
// empty without a /proc that shows the processes of our namespace.
var machine = sync.OnceValue(func() string {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return ""
	}
	boot := Boot()
	if boot == "" {
		return ""
	}
	processes, _ := os.Readlink("/proc/self/ns/pid")
	times, _ := os.Readlink("/proc/self/ns/time") // older kernels have none
	return boot + " " + processes + " " + times
})

// readFile reads a short file of /proc with half the calls of os.ReadFile: each attempt begins with two.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var text [1024]byte
	n, err := unix.Read(fd, text[:])
	return text[:max(n, 0)], err
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

// HaveOpen reports whether a process that was started after this one has a file open for reading. It cannot look into
// those of other users: one that an attempt may have started is taken for one that has.
func HaveOpen(file os.FileInfo) bool {
	all := allProcesses()
	own, _ := lookup(os.Getpid())
	ancestors := ancestorsOf(own.Pid, all) // some may have been started within the same hundredth of a second
	return slices.ContainsFunc(all, func(p info) bool {
		if p.Start < own.Start || slices.Contains(ancestors, p.Pid) {
			return false
		}
		dir := "/proc/" + strconv.Itoa(p.Pid) + "/fd/"
		descriptors, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrPermission) {
			return mayBeOurs(p, own, all)
		}
		return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
			open, err := os.Stat(dir + d.Name())
			if err != nil || !os.SameFile(open, file) {
				return false
			}
			link, err := d.Info() // its mode is that in which the file is open
			return err == nil && link.Mode().Perm()&0o400 != 0
		})
	})
}

// mayBeOurs reports whether this process has started another one, or something that has ended meanwhile has: the latter
// has got a parent that is not of the session. Who writes to our stdin has the shell for its parent.
func mayBeOurs(p, own info, all []info) bool {
	if slices.Contains(ancestorsOf(p.Pid, all), own.Pid) {
		return true
	}
	parent, _ := lookup(p.parent)
	return p.Session == own.Session && parent.Session != own.Session
}

// Fields of /proc/PID/stat, counted after "pid (name)", since the name may contain anything.
const (
	statState   = 0
	statParent  = 1
	statGroup   = 2
	statSession = 3
	statStart   = 19
)

// second is one in the unit of info.Start.
const second = 100

// clock returns the time in the unit of info.Start.
func clock() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return now.Nano() / (1e9 / second)
}

// lookup describes a process; ok is false if there is none.
func lookup(pid int) (p info, ok bool) {
	stat, err := readFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	nameEnd := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[nameEnd+1:])
	if len(fields) <= statStart {
		return p, false
	}
	_, name, _ := strings.Cut(string(stat[:nameEnd]), "(")
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
	state := fields[statState][0]
	return info{
		Pid: pid, Group: int(number(statGroup)), Session: int(number(statSession)), Start: number(statStart),
		parent: int(number(statParent)), name: name, zombie: state == 'Z' || state == 'X',
		stopped: state == 'T' || state == 't',
	}, true
}

// environment returns the settings that the process was started with. It is empty for a process of another user.
func (p info) environment() []string {
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/environ")
	return strings.Split(string(environ), "\x00")
}

// Boot identifies this boot of the machine.
func Boot() string {
	boot, _ := readFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(boot))
}
