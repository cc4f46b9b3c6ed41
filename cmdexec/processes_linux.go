package cmdexec

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// machine identifies what process numbers refer to: this boot, and this namespace of them.
func machine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return string(bytes.TrimSpace(boot)) + " " + namespace
}

// running returns the processes for which keep is true, without zombies.
func running(keep func(proc) bool) []proc {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := lookAt(pid); ok && !p.zombie && keep(p) {
			found = append(found, p)
		}
	}
	return found
}

// Places in /proc/PID/stat, counted behind "pid (name)", where a name may hold anything.
const (
	statState   = 0
	statGroup   = 2
	statSession = 3
	statStart   = 19
)

// lookAt reads about a process; ok is false where it is gone.
func lookAt(pid int) (p proc, ok bool) {
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
	return proc{
		pid: pid, group: int(number(statGroup)), session: int(number(statSession)), start: number(statStart),
		zombie: state == 'Z' || state == 'X',
	}, true
}

// environment returns the settings that the process was started with. Those of other users cannot be read.
func (p proc) environment() []string {
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	return strings.Split(string(environ), "\x00")
}
