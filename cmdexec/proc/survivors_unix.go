//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

// info is a process as the system describes it.
type info struct {
	Pid     int   `json:"pid"`
	Group   int   `json:"group"`
	Session int   `json:"session"`
	Start   int64 `json:"start"` // in a unit of the system, since its boot or since 1970
	zombie  bool
}

// processes returns the processes that keep selects, without zombies.
func processes(keep func(info) bool) []info {
	return slices.DeleteFunc(allProcesses(), func(p info) bool { return p.zombie || !keep(p) })
}

// hasEnvironment reports whether the process was started with all of these settings.
func (p info) hasEnvironment(settings ...string) bool {
	all := p.environment()
	return !slices.ContainsFunc(settings, func(s string) bool { return !slices.Contains(all, s) })
}

// isNestedIn reports whether the process was started by a retry that runs inside the task.
func (p info) isNestedIn(taskID string) bool {
	return slices.ContainsFunc(p.environment(), func(setting string) bool {
		outer, ok := strings.CutPrefix(setting, EnvOuterTasks+"=")
		return ok && slices.Contains(strings.Split(outer, ","), taskID)
	})
}

// token tells a later run how to find the processes of an attempt. The journal stores it as JSON.
type token struct {
	Shared  bool   `json:"shared,omitempty"` // the group was retry's own
	Init    bool   `json:"init,omitempty"`   // retry was PID 1, with which the system kills all others of the namespace
	Early   bool   `json:"early,omitempty"`  // Start is a moment before the start of the process
	info           // of the process that was started
	Machine string `json:"machine"` // empty if the system did not describe it
}

// Token returns the token of the process.
func (p *Process) Token() string {
	found, ok := lookup(p.pid)
	if !ok {
		return p.earlyToken(clock())
	}
	return token{Shared: p.shared, info: found}.text()
}

// earlyToken returns a token without asking the system for the process, which takes time.
func (p *Process) earlyToken(begun int64) string {
	known := token{Shared: p.shared, Early: true, info: info{Pid: p.pid, Group: p.pid, Start: begun}}
	known.Session, _ = unix.Getsid(0)
	if p.shared {
		known.Group = syscall.Getpgrp()
	}
	return known.text()
}

func (k token) text() string {
	k.Init, k.Machine = os.Getpid() == 1, machine()
	text, _ := json.Marshal(k) // which cannot fail for numbers and strings
	return string(text)
}

// isProcess reports whether p, which has the number of the process that was started, is that process.
func (k token) isProcess(p info) bool {
	if k.Early {
		return p.Start >= k.Start && p.Start < k.Start+5*second // long before a number is given away again
	}
	return p.Start == k.Start
}

// NothingLeft is the token of an attempt whose processes have all ended.
const NothingLeft = "{}"

// Find implements runner.Survivors.
func (s Survivors) Find(t *task.Task, a task.Attempt) (string, error) {
	found, err := survivors(t, a)
	switch {
	case s.AssumeDead && err != nil:
		return "", nil
	case err != nil, len(found) == 0:
		return "", err
	case len(found) == 1:
		return fmt.Sprintf("process %d", found[0].Pid), nil
	}
	return fmt.Sprintf("%d processes (process group %d)", len(found), found[0].Group), nil
}

// Signal implements runner.Survivors. A stopped process handles a signal only after a CONT.
func (s Survivors) Signal(t *task.Task, a task.Attempt, sig os.Signal) {
	number, _ := sig.(syscall.Signal) // every signal is one; 0 would have no effect
	found, _ := survivors(t, a)
	for _, p := range found {
		_ = syscall.Kill(p.Pid, number)
		_ = syscall.Kill(p.Pid, syscall.SIGCONT)
	}
}

var (
	errNoProc   = errors.New("the system does not show its processes here (is /proc mounted?)")
	errNotShown = errors.New("the system did not show its processes where it ran")
	errElse     = errors.New("it ran in another container, or in another pid or time namespace")
)

func survivors(t *task.Task, a task.Attempt) ([]info, error) {
	self, here := os.Getpid(), machine()
	var known token
	switch {
	case here == "" && a.Process == "":
		return nil, errNoProc
	case a.Process == "": // its retry died before it noted the token
		return processes(func(p info) bool {
			return p.Pid != self && p.hasEnvironment(EnvTaskID+"="+t.ID, EnvAttempt+"="+strconv.Itoa(a.Number))
		}), nil
	case json.Unmarshal([]byte(a.Process), &known) != nil, known.Pid == 0, known.Init && known.Machine != here:
		return nil, nil
	case here == "":
		return nil, errNoProc
	case known.Machine == "":
		return nil, errNotShown
	case known.Machine != here && bootOf(known.Machine) == bootOf(here):
		return nil, errElse
	case known.Machine != here: // rebooted
		return nil, nil
	}
	if leader, ok := lookup(known.Pid); ok && !known.Shared && !known.isProcess(leader) {
		known.Group = -1 // the number of the leader was given to another process, so the whole group had ended
	}
	return processes(func(p info) bool { return p.Pid != self && known.covers(p, t.ID) }), nil
}

// bootOf is the part of a machine's identity that changes with each boot.
func bootOf(machine string) string {
	id, _, _ := strings.Cut(machine, " ")
	return id
}

// covers reports whether a process belongs to the attempt. The system does not give the number of a group to another
// group while it has members. So a younger process with this group and session, but not its leader, is in the same
// group.
func (k token) covers(p info, taskID string) bool {
	switch {
	case p.Group != k.Group:
		return p.Session == k.Session && p.isNestedIn(taskID)
	case p.Pid == k.Pid:
		return k.isProcess(p)
	case k.Shared:
		return p.hasEnvironment(EnvTaskID + "=" + taskID)
	}
	return p.Session == k.Session && p.Start >= k.Start && p.Pid != k.Group
}
