//go:build unix

package proc

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

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
	info           // of the process that was started
	Machine string `json:"machine"`
}

// Token returns the token of the process, or "" if the system does not describe it.
func (p *Process) Token() string {
	found, ok := lookup(p.pid)
	if !ok {
		return ""
	}
	text, _ := json.Marshal(token{p.shared, found, machine()}) // which cannot fail for numbers and strings
	return string(text)
}

// Find implements runner.Survivors.
func (s Survivors) Find(t *task.Task, a task.Attempt) string {
	found := survivors(t, a)
	switch len(found) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("process %d", found[0].Pid)
	}
	return fmt.Sprintf("%d processes (process group %d)", len(found), found[0].Group)
}

// Signal implements runner.Survivors. A stopped process handles a signal only after a CONT.
func (s Survivors) Signal(t *task.Task, a task.Attempt, sig os.Signal) {
	number, _ := sig.(syscall.Signal) // every signal is one; 0 would have no effect
	for _, p := range survivors(t, a) {
		_ = syscall.Kill(p.Pid, number)
		_ = syscall.Kill(p.Pid, syscall.SIGCONT)
	}
}

func survivors(t *task.Task, a task.Attempt) []info {
	self := os.Getpid()
	if a.Process == "" { // it was short, or its retry died before it stored the token
		return processes(func(p info) bool {
			return p.Pid != self && p.hasEnvironment(EnvTaskID+"="+t.ID, EnvAttempt+"="+strconv.Itoa(a.Number))
		})
	}
	var known token
	if err := json.Unmarshal([]byte(a.Process), &known); err != nil || known.Machine != machine() {
		return nil // the machine has been rebooted since
	}
	if leader, ok := lookup(known.Pid); ok && !known.Shared && leader.Start != known.Start {
		known.Group = -1 // the number of the leader was given to another process, so the whole group had ended
	}
	return processes(func(p info) bool { return p.Pid != self && known.covers(p, t.ID) })
}

// covers reports whether a process belongs to the attempt. The system does not give the number of a group to another
// group while it has members. So a younger process with this group and session, but not its leader, is in the same
// group.
func (k token) covers(p info, taskID string) bool {
	switch {
	case p.Group != k.Group:
		return p.Session == k.Session && p.isNestedIn(taskID)
	case p.Pid == k.Pid:
		return p.Start == k.Start
	case k.Shared:
		return p.hasEnvironment(EnvTaskID + "=" + taskID)
	}
	return p.Session == k.Session && p.Start >= k.Start && p.Pid != k.Group
}
