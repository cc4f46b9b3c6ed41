package proc

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isUnreadable reports whether the process lives, and does not show its environment to this user: it has another user,
// or was started by a program that gives rights.
func (p info) isUnreadable() bool {
	_, err := p.readEnvironment()
	if !errors.Is(err, fs.ErrPermission) {
		return false
	}
	s, ok := statOf(p.Pid) // the file of a process that has ended is refused in the same way
	return ok && (s.number(statSize) != 0 || s.number(statThreads) > 1)
}

// unsure returns an unsureError where something lives that may be of the attempt. Only its group and its session are
// looked at: what an unreadable process in another session belongs to, nothing tells.
func (k token) unsure(all []info, spared func(info) bool) error {
	if leader, ok := lookup(k.Session); ok && leader.Pid != k.Pid && leader.Start > k.Start {
		return nil // the session has ended, and another one has its number
	}
	for _, p := range all {
		if !p.zombie && !spared(p) && k.mayHaveStarted(p, all) && p.isUnreadable() {
			return &unsureError{describe([]info{p}), "its environment cannot be read by this user"}
		}
	}
	if pid := k.hiddenProcess(all); pid != 0 {
		return &unsureError{describe([]info{{Pid: pid}}), "/proc hides it from this user"}
	}
	return nil
}

// mayHaveStarted reports whether an unreadable process can be one that the attempt has left in its session: it is as
// young, and lost its parent, or its parent is such a process. What another command of the session has started has a
// parent there that is older than the attempt, or that shows an environment.
func (k token) mayHaveStarted(p info, all []info) bool {
	if p.Session != k.Session || p.Start < k.Start {
		return false
	}
	for _, pid := range ancestorsOf(p.parent, all) {
		at := slices.IndexFunc(all, func(p info) bool { return p.Pid == pid })
		switch {
		case at < 0, pid == 1, all[at].Session != k.Session:
			return true
		case all[at].Start < k.Start, len(all[at].environment()) > 0: // it is empty while a process ends
			return false
		}
	}
	return false
}

// hiddenProcess returns a process of the attempt's group that /proc hides (hidepid), or one of its session that got its
// number since the attempt began; 0 where there is none. What has started this process may be hidden too: of that no
// more is known than its number and its group.
func (k token) hiddenProcess(all []info) int {
	fields := strings.Fields(readText("/proc/loadavg")) // the last one is the number that was given away last
	limit, _ := strconv.Atoi(readText("/proc/sys/kernel/pid_max"))
	if len(fields) == 0 || limit <= 0 {
		return 0
	}
	if k.hasHiddenGroup(all) {
		for pid := range limit {
			if group, ok := k.hides(pid); ok && group == k.Group {
				return pid
			}
		}
	}
	if _, shown := lookup(1); shown {
		return 0 // so are all others
	}
	last, _ := strconv.Atoi(fields[len(fields)-1])
	first, own, parent := cmp.Or(k.Pid, k.Session), syscall.Getpgrp(), os.Getppid()
	for i := range (last-first+limit)%limit + 1 {
		pid := (first + i) % limit
		if group, ok := k.hides(pid); ok && pid != parent && (group != own || group == k.Group) {
			return pid
		}
	}
	return 0
}

func readText(path string) string {
	text, _ := readFile(path)
	return string(bytes.TrimSpace(text))
}

// hasHiddenGroup reports whether the attempt's own group has members, of which /proc shows none.
func (k token) hasHiddenGroup(all []info) bool {
	inGroup := func(p info) bool { return p.Group == k.Group }
	return k.Pid != 0 && !k.Shared && k.Group > 1 && !slices.ContainsFunc(all, inGroup) &&
		!errors.Is(syscall.Kill(-k.Group, 0), syscall.ESRCH)
}

// hides reports whether a number is that of a living process of the session that /proc does not show, and its group.
func (k token) hides(pid int) (group int, ok bool) {
	if session, err := unix.Getsid(pid); pid == 0 || err != nil || session != k.Session {
		return 0, false
	}
	_, shown := lookup(pid)
	group, err := unix.Getpgid(pid)
	return group, !shown && err == nil && !hasEnded(pid)
}

// hasEnded reports whether a number is that of no process, of a zombie, or of a thread beside the first of a process.
func hasEnded(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil { // older kernels, and containers that forbid it, do not tell
		return !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM)
	}
	defer func() { _ = unix.Close(fd) }()
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n > 0
}
