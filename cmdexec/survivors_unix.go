//go:build unix

package cmdexec

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

// proc is a process as the system shows it.
type proc struct {
	pid, group, session int
	start               int64 // in units of the system's own, since its boot or since 1970
	zombie              bool
}

// hasInEnvironment reports whether the process was started with all of these settings.
func (p proc) hasInEnvironment(settings ...string) bool {
	all := p.environment()
	return !slices.ContainsFunc(settings, func(s string) bool { return !slices.Contains(all, s) })
}

// nestedIn reports whether a retry inside the task started the process.
func (p proc) nestedIn(tk string) bool {
	return slices.ContainsFunc(p.environment(), func(kv string) bool {
		outer, ok := strings.CutPrefix(kv, envOuterTasks+"=")
		return ok && slices.Contains(strings.Split(outer, ","), tk)
	})
}

// token says where the processes of an attempt are found. It stands in the journal.
type token struct {
	Shared  bool   `json:"shared,omitempty"` // the group is the one that retry itself was in
	Pid     int    `json:"pid"`
	Group   int    `json:"group"`
	Session int    `json:"session"`
	Start   int64  `json:"start"` // of the process
	Machine string `json:"machine"`
}

// token returns where the process is found; empty where the system does not tell.
func (p *process) token() string {
	seen, ok := lookAt(p.pid)
	if !ok {
		return ""
	}
	text, err := json.Marshal(token{
		Shared: p.shared, Pid: seen.pid, Group: seen.group, Session: seen.session, Start: seen.start, Machine: machine(),
	})
	if err != nil {
		return ""
	}
	return string(text)
}

// Survivors finds what an attempt left running when its retry was killed or stopped. It implements runner.Survivors.
type Survivors struct {
	Kill bool // stop them instead of waiting for their end
}

// Unwanted implements runner.Survivors.
func (s Survivors) Unwanted() bool { return s.Kill }

// Find implements runner.Survivors.
func (s Survivors) Find(t *task.Task, a task.Attempt) string {
	found := survivors(t, a)
	switch len(found) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("process %d", found[0].pid)
	}
	return fmt.Sprintf("%d processes (process group %d)", len(found), found[0].group)
}

// Signal implements runner.Survivors. A stopped process takes a signal only after a CONT.
func (s Survivors) Signal(t *task.Task, a task.Attempt, sig os.Signal) {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	for _, p := range survivors(t, a) {
		_ = syscall.Kill(p.pid, n)
		_ = syscall.Kill(p.pid, syscall.SIGCONT)
	}
}

func survivors(t *task.Task, a task.Attempt) []proc {
	self := os.Getpid()
	if a.Process == "" { // it was short, or its owner died before it could write that down
		return running(func(p proc) bool {
			return p.pid != self && p.hasInEnvironment(EnvTaskID+"="+t.ID, EnvAttempt+"="+strconv.Itoa(a.Number))
		})
	}
	var known token
	if err := json.Unmarshal([]byte(a.Process), &known); err != nil || known.Machine != machine() {
		return nil // the machine has been started anew since
	}
	if leader, there := lookAt(known.Pid); there && !known.Shared && leader.start != known.Start {
		known.Group = -1 // all of it had ended before somebody else could have its number
	}
	return running(func(p proc) bool { return p.pid != self && known.covers(p, t.ID) })
}

// covers reports whether a process belongs to the attempt. The number of a group goes to no other as long as it has a member: one
// that is younger than the first, in the same session, and not led by somebody else, is the same group still.
func (k token) covers(p proc, tk string) bool {
	switch {
	case p.group != k.Group:
		return p.session == k.Session && p.nestedIn(tk)
	case p.pid == k.Pid:
		return p.start == k.Start
	case k.Shared:
		return p.hasInEnvironment(EnvTaskID + "=" + tk)
	}
	return p.session == k.Session && p.start >= k.Start && p.pid != k.Group
}

// members returns the processes of a running attempt: those of its own group, or those of ours that have its task in their
// environment; and what a nested retry has in groups of its own, but no daemon in a session of its own.
func (p *process) members() []proc {
	leader := p.pid
	group, session := leader, 0
	if p.shared {
		group = syscall.Getpgrp()
	}
	session, _ = unix.Getsid(0)
	return running(func(q proc) bool {
		if q.group != group {
			return q.session == session && q.nestedIn(p.task)
		}
		return !p.shared || q.pid == leader || q.hasInEnvironment(EnvTaskID+"="+p.task)
	})
}
