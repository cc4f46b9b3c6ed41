package proc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// system identifies the installation, which a container of systemd-nspawn or LXC shares with the machine as little as
// the boot. It is a hash, since machine-id(5) asks not to show the id to others; empty where there is none.
var system = sync.OnceValue(func() string {
	id, _ := readFile("/etc/machine-id")
	id = bytes.TrimSpace(id)
	if len(id) != 32 { // "uninitialized" in the first boot
		return ""
	}
	sum := sha256.Sum256(append([]byte("retry "), id...))
	return hex.EncodeToString(sum[:8])
})

// readFile reads a short file of /proc with half the calls of os.ReadFile: each attempt begins with two.
func readFile(path string) ([]byte, error) { return readOnce(path, make([]byte, 1024)) }

func readOnce(path string, text []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, text)
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
// has got PID 1 or another parent that is not of the session. Who writes to our stdin has the shell for its parent.
func mayBeOurs(p, own info, all []info) bool {
	if slices.Contains(ancestorsOf(p.Pid, all), own.Pid) {
		return true
	}
	parent, _ := lookup(p.parent)
	return p.Session == own.Session && (p.parent == 1 || parent.Session != own.Session)
}

// Fields of /proc/PID/stat, counted after "pid (name)", since the name may contain anything.
const (
	statState   = 0
	statParent  = 1
	statGroup   = 2
	statSession = 3
	statThreads = 17
	statStart   = 19
	statSize    = 20 // of its memory: 0 where it has none, as a kernel thread or a zombie
	statCode    = 23 // where its code begins: the last that an execve sets
	statEnv     = 47 // where its environment begins
	statEnvEnd  = 48
)

// second is one in the unit of info.Start.
const second = 100

// clock returns the time in the unit of info.Start.
func clock() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return now.Nano() / (1e9 / second)
}

// lookup describes a process; ok is false if there is none. One whose main thread has ended is shown as a zombie until
// its other threads have ended too.
func lookup(pid int) (p info, ok bool) {
	s, ok := statOf(pid)
	state := s.letter
	return info{
		Pid: pid, Group: int(s.number(statGroup)), Session: int(s.number(statSession)), Start: s.number(statStart),
		parent: int(s.number(statParent)), name: s.name, zombie: (state == 'Z' || state == 'X') && s.number(statThreads) <= 1,
		stopped: state == 'T' || state == 't',
	}, ok
}

// stat is the line of /proc/PID/stat.
type stat struct {
	name   string
	letter byte // the state
	fields [][]byte
}

func statOf(pid int) (s stat, ok bool) {
	line, err := readFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	nameEnd := bytes.LastIndexByte(line, ')')
	s.fields = bytes.Fields(line[nameEnd+1:])
	if len(s.fields) <= statStart {
		return s, false
	}
	_, s.name, _ = strings.Cut(string(line[:nameEnd]), "(")
	s.letter = s.fields[statState][0]
	return s, true
}

// number returns a field; 0 where there is none.
func (s stat) number(field int) (n int64) {
	if field < len(s.fields) {
		n, _ = strconv.ParseInt(string(s.fields[field]), 10, 64)
	}
	return n
}

// An execve gives a process new memory a moment before its environment is in there. So long is that waited for.
const (
	execPause  = 1 // milliseconds
	execPauses = 1000
)

// environment returns the settings that the process was started with. It is empty for a process of another user.
func (p info) environment() []string {
	settings, _ := p.readEnvironment()
	return settings
}

func (p info) readEnvironment() ([]string, error) {
	dir := "/proc/" + strconv.Itoa(p.Pid)
	for pauses := 0; ; pauses++ {
		environ, err := readEnviron(dir + "/environ")
		if len(environ) > 0 {
			return strings.Split(string(environ), "\x00"), nil
		}
		s, ok := statOf(p.Pid)
		switch {
		case ok && s.number(statSize) == 0 && s.number(statThreads) > 1:
			return environmentOfThreads(dir)
		case err != nil, !ok, s.number(statSize) == 0, pauses == execPauses,
			s.number(statCode) != 0 && s.number(statEnv) == s.number(statEnvEnd):
			return nil, err
		}
		_, _ = unix.Poll(nil, execPause)
	}
}

// readEnviron reads an environment at once: a second read finds nothing where an execve came in between.
func readEnviron(path string) ([]byte, error) {
	for size := 16 << 10; ; size *= 2 {
		if environ, err := readOnce(path, make([]byte, size)); err != nil || len(environ) < size {
			return environ, err
		}
	}
}

// environmentOfThreads returns the environment of a process whose main thread has ended: the others still have it.
func environmentOfThreads(dir string) (settings []string, err error) {
	threads, _ := filepath.Glob(dir + "/task/*/environ")
	for _, path := range threads {
		var environ []byte
		if environ, err = readEnviron(path); err == nil && len(environ) > 0 {
			return strings.Split(string(environ), "\x00"), nil
		}
	}
	return nil, err
}

// Boot identifies this boot of the machine.
func Boot() string {
	boot, _ := readFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(boot))
}

// outlivedElse returns a signal that other systems lack.
func outlivedElse() []syscall.Signal { return []syscall.Signal{syscall.SIGPWR} }

// askSignal comes after all others but one, which a thread that watches a pipe waits for: it would take this one, too.
const askSignal = syscall.Signal(63)

func ask() error { return syscall.Kill(os.Getpid(), askSignal) }

// realTime returns the signals of real time but for the first three, which are for the runtime of Go.
func realTime() (signals []syscall.Signal) {
	for sig := syscall.Signal(35); sig <= 64; sig++ {
		signals = append(signals, sig)
	}
	return signals
}
