//go:build unix

package proc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	parent  int
	name    string // empty where the system does not show it
	zombie  bool
	stopped bool
}

// processes returns the processes that keep selects, without zombies.
func processes(keep func(info) bool) []info { return living(allProcesses(), keep) }

func living(all []info, keep func(info) bool) []info {
	return slices.DeleteFunc(slices.Clone(all), func(p info) bool { return p.zombie || !keep(p) })
}

// isOf reports whether the process was started by an attempt of the task, by this one or a later one: where the journal
// failed in mid-run, it does not know of the later ones.
func (p info) isOf(taskID string, attempt int) bool {
	number := 0
	all := p.environment()
	for _, setting := range all {
		if text, ok := strings.CutPrefix(setting, EnvAttempt+"="); ok {
			number, _ = strconv.Atoi(text)
		}
	}
	return number >= attempt && slices.Contains(all, EnvTaskID+"="+taskID)
}

// isOfAnother reports whether the process was started by an attempt of another task, which does not run inside this
// one.
func (p info) isOfAnother(taskID string) bool {
	started := slices.ContainsFunc(p.environment(), func(setting string) bool {
		id, ok := strings.CutPrefix(setting, EnvTaskID+"=")
		return ok && id != taskID
	})
	return started && !p.isNestedIn(taskID, 0)
}

// isNestedIn reports whether the process was started by a retry that ran inside of this attempt of the task, or of a
// later one. An older retry does not say in which, which counts as 0.
func (p info) isNestedIn(taskID string, attempt int) bool {
	return slices.ContainsFunc(p.environment(), func(setting string) bool {
		outer, ok := strings.CutPrefix(setting, EnvOuterTasks+"=")
		return ok && slices.ContainsFunc(strings.Split(outer, ","), func(entry string) bool {
			id, text, _ := strings.Cut(entry, ":")
			number, _ := strconv.Atoi(text)
			return id == taskID && number >= attempt
		})
	})
}

// isWithin reports whether the process was started by this attempt of the task or by a later one, or by a retry inside
// of that.
func (p info) isWithin(taskID string, attempt int) bool {
	return p.isOf(taskID, attempt) || p.isNestedIn(taskID, max(attempt, 1))
}

// token tells a later run how to find the processes of an attempt. The journal stores it as JSON.
type token struct {
	Shared    bool   `json:"shared,omitempty"` // the group was retry's own
	Early     bool   `json:"early,omitempty"`  // Start is a moment before the start of the process
	info             // of the process that was started; before that Pid is 0 and Group that of retry
	Machine   string `json:"machine"`             // empty if the system did not describe it
	System    string `json:"system,omitempty"`    // what stays of that when it is booted anew; empty where nobody knows
	Container string `json:"container,omitempty"` // with which all of it ends
	Assumed   bool   `json:"assumed,omitempty"`   // a user has said that all have ended: used where that cannot be seen

	others map[int]bool // groups, when it is looked for: see groupsOfOthers
}

// Token returns the token of the process.
func (p *Process) Token() string {
	found, ok := lookup(p.pid)
	if !ok {
		return p.earlyToken() // it has ended, or /proc hides it
	}
	return token{Shared: p.shared, info: found}.text()
}

// session is that of this process, which never makes one of its own.
var session = sync.OnceValue(func() int {
	id, _ := unix.Getsid(0)
	return id
})

// earlyToken returns a token without asking the system for the process, which takes time or is not started yet.
func (p *Process) earlyToken() string {
	known := token{Shared: p.shared, Early: true, info: info{Pid: p.pid, Group: p.pid, Start: p.begun, Session: session()}}
	if p.shared || p.pid == 0 {
		known.Group = syscall.Getpgrp()
	}
	return known.text()
}

func (k token) text() string {
	k.Machine, k.System, k.Container = machine(), system(), Container()
	text, _ := json.Marshal(k) // which cannot fail for numbers and strings
	return string(text)
}

// ContainerOf returns the Container in which an attempt ran; empty where nobody knows, or a user has said that all of
// the attempt has ended.
func ContainerOf(process string) string {
	var known token
	if json.Unmarshal([]byte(process), &known) != nil || known.Assumed {
		return ""
	}
	return known.Container
}

// isProcess reports whether p, which has the number of the process that was started, is that process.
func (k token) isProcess(p info) bool {
	if k.Early {
		return k.soonAfter(p)
	}
	return p.Start == k.Start
}

// soonAfter reports whether p was started in the first moments of the attempt, long before a number is given away
// again.
func (k token) soonAfter(p info) bool { return p.Start >= k.Start && p.Start < k.Start+5*second }

// NothingLeft is the token of an attempt whose processes have all ended.
const NothingLeft = "{}"

// AssumeDead returns the token with a user's word that the processes have ended. Who can see them still looks.
func AssumeDead(process string) string {
	var known token
	_ = json.Unmarshal([]byte(process), &known) // where there is none, the environment is looked at
	known.Assumed = true
	text, _ := json.Marshal(known) // which cannot fail for numbers and strings
	return string(text)
}

// Find implements runner.Survivors.
func (s Survivors) Find(t *task.Task, a task.Attempt) (string, error) {
	found, err := survivors(t, a)
	return describe(found), err
}

// FindUnrecorded implements runner.Survivors.
func (s Survivors) FindUnrecorded(t *task.Task) (string, error) { return describe(unrecorded(t)), nil }

// unrecorded returns the living processes of hooks, and of an attempt after the task's last one. A worker begins none
// that it could not claim. What is older than a hook may run was left by that on purpose.
func unrecorded(t *task.Task) []info {
	attempts := t.Target == nil && t.Queue != task.QueueWorker
	if !attempts && t.Options.OnStart == "" && t.Options.OnRetry == "" {
		return nil
	}
	most := cmp.Or(t.Options.HookTimeout, task.DefaultHookTimeout)
	oldest := clock() - int64(most.Seconds()*second)
	all := allProcesses()
	ancestors := ancestorsOf(os.Getpid(), all)
	return living(all, func(p info) bool {
		return !slices.Contains(ancestors, p.Pid) &&
			(attempts && p.isWithin(t.ID, t.Last.Number+1) || p.Start > oldest && p.isOf(t.ID, 0) && p.isOfHook())
	})
}

// isOfHook reports whether the process was started by a hook.
func (p info) isOfHook() bool {
	return slices.ContainsFunc(p.environment(), func(setting string) bool {
		return strings.HasPrefix(setting, EnvStatus+"=")
	})
}

func describe(found []info) string {
	if len(found) == 0 {
		return ""
	}
	var groups []string
	for _, p := range found {
		if group := strconv.Itoa(p.Group); !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	switch name := found[0].name; {
	case len(groups) > 1:
		return fmt.Sprintf("%d processes (process groups %s)", len(found), strings.Join(groups, ", "))
	case len(found) > 1:
		return fmt.Sprintf("%d processes (process group %s)", len(found), groups[0])
	case name != "":
		return fmt.Sprintf("process %d (%s)", found[0].Pid, strings.Trim(strconv.QuoteToGraphic(name), `"`))
	}
	return fmt.Sprintf("process %d", found[0].Pid)
}

// Signal implements runner.Survivors. A stopped process handles a signal only after a CONT.
func (s Survivors) Signal(t *task.Task, a task.Attempt, sig os.Signal) {
	number, _ := sig.(syscall.Signal) // every signal is one; 0 would have no effect
	var found []info
	if a.Latest() == 0 {
		found = unrecorded(t)
	} else {
		found, _ = survivors(t, a)
	}
	for _, p := range found {
		_ = syscall.Kill(p.Pid, number)
		_ = syscall.Kill(p.Pid, syscall.SIGCONT)
	}
}

var (
	errNoList   = errors.New("the system did not list its processes (too many open files?)")
	errNoProc   = errors.New("the system does not show its processes here (is /proc mounted?)")
	errNotShown = errors.New("the system did not show its processes where it ran")
	errEnded    = errors.New("they have all ended")
	errElse     = errors.New("it ran in another container, or in another pid or time namespace")
)

// survivors returns the living processes of an attempt. It returns an error where they cannot be seen, or where there
// are none but something that may be one, unless a user has said that they have ended.
func survivors(t *task.Task, a task.Attempt) ([]info, error) {
	a.Number = a.Latest()
	var known token // empty, it finds by the environment alone, where nobody could note anything
	noted := a.Process != ""
	if noted {
		if json.Unmarshal([]byte(a.Process), &known) != nil || known.Start == 0 && !known.Assumed {
			return nil, nil
		}
		noted = known.Start != 0
	}
	switch err := known.visible(noted); {
	case errors.Is(err, errEnded), err != nil && known.Assumed:
		return nil, nil
	case err != nil:
		return nil, err
	}
	if leader, ok := lookup(known.Pid); ok && known.Pid != 0 && !known.Shared && !known.isProcess(leader) {
		known.Group = -1 // the number of the leader was given to another process, so the whole group had ended
	}
	all := allProcesses()
	known.others = groupsOfOthers(all, known.Start)
	own, ancestors := syscall.Getpgrp(), ancestorsOf(os.Getpid(), all)
	inside := info{Pid: os.Getpid()}.isWithin(t.ID, a.Number) // a shell that the attempt left, for example
	spared := func(p info) bool {                             // it would wait for itself
		return slices.Contains(ancestors, p.Pid) || inside && p.Group == own && own != known.Group
	}
	covered := living(all, func(p info) bool { return known.covers(p, t.ID, a.Number) })
	found := slices.DeleteFunc(withUnreadableDescendants(covered, all), spared)
	switch isListed := func(p info) bool { return p.Pid == os.Getpid() }; {
	case len(found) > 0, known.Assumed:
		return found, nil // when these have ended, the next look asks for what it is not sure of
	case !slices.ContainsFunc(all, isListed):
		return nil, errNoList
	case !noted:
		return nil, nil
	}
	return nil, known.unsure(all, spared)
}

// unsureError says that something lives which may be of the attempt, and that this user cannot tell.
type unsureError struct{ what, why string }

func (e *unsureError) Error() string { return e.what + " may belong to it, and " + e.why }

// withUnreadableDescendants adds what these have started and this user cannot look into.
func withUnreadableDescendants(of, all []info) []info {
	known := len(of)
	found := withDescendants(of, all)
	return append(found[:known:known], slices.DeleteFunc(slices.Clone(found[known:]), func(p info) bool {
		return !p.isUnreadable()
	})...)
}

// withDescendants adds the processes that these have started, and those that they have started, and so on.
func withDescendants(of, all []info) []info {
	family := map[int]bool{}
	for _, p := range of {
		family[p.Pid] = true
	}
	for size := 0; size < len(family); {
		size = len(family)
		for _, p := range all {
			if !p.zombie && family[p.parent] && !family[p.Pid] {
				family[p.Pid], of = true, append(of, p)
			}
		}
	}
	return of
}

// visible returns an error where the processes of an attempt cannot be seen: errEnded where they have ended with their
// system.
func (k token) visible(noted bool) error {
	here := machine()
	switch {
	case here == "":
		return errNoProc
	case !noted || k.Machine == here:
		return nil
	case k.Machine == "":
		return errNotShown
	case bootOf(k.Machine) == bootOf(here), k.ofAnotherSystem(here):
		return errElse
	}
	return errEnded // the machine has been booted anew
}

// ofAnotherSystem reports whether another boot is that of a container, or of the machine around this one. Without any,
// a system whose machine-id is new in each boot, as a live one's, is the same.
func (k token) ofAnotherSystem(here string) bool {
	contained := !strings.Contains(k.Machine, firstNamespace) || !strings.Contains(here, firstNamespace)
	return contained && k.System != "" && system() != "" && k.System != system()
}

// firstNamespace is the pid namespace in which Linux boots: PROC_PID_INIT_INO of include/linux/proc_ns.h.
const firstNamespace = "pid:[4026531836]"

// ancestorsOf returns the process itself, its parent, and so on.
func ancestorsOf(pid int, all []info) (line []int) {
	for at := 0; at >= 0 && !slices.Contains(line, pid); {
		line = append(line, pid)
		if at = slices.IndexFunc(all, func(p info) bool { return p.Pid == pid }); at >= 0 {
			pid = all[at].parent
		}
	}
	return line
}

// groupsOfOthers returns the groups that an attempt cannot have left: with a process that is older, or with a parent in
// their session, as the jobs of a shell and what a living retry runs have. The group of a retry that was killed has
// none.
func groupsOfOthers(all []info, start int64) map[int]bool {
	processes, groups := map[int]info{}, map[int]bool{}
	for _, p := range all {
		processes[p.Pid] = p
	}
	for _, p := range all {
		parent, ok := processes[p.parent]
		if p.Start < start || ok && parent.Pid != 1 && parent.Session == p.Session && parent.Group != p.Group {
			groups[p.Group] = true
		}
	}
	return groups
}

// bootOf is the part of a machine's identity that changes with each boot.
func bootOf(machine string) string {
	id, _, _ := strings.Cut(machine, " ")
	return id
}

// covers reports whether a process belongs to the attempt. The system does not give the number of a group to another
// group while it has members. So a younger process with this group and session, but not its leader, is in the same
// group. What has left the group is known by its environment, whatever its session. Where retry was killed before it
// could note the group, an orphaned group of its session counts that is as old as the attempt.
func (k token) covers(p info, taskID string, attempt int) bool {
	switch {
	case p.Start < k.Start:
		return false
	case p.Pid == k.Pid:
		return k.isProcess(p)
	case k.Pid != 0 && !k.Shared && p.Group == k.Group && p.Session == k.Session && p.Pid != k.Group,
		p.isWithin(taskID, attempt),
		p.Session == k.Session && p.isNestedIn(taskID, 0):
		return true
	}
	unnoted := k.Start != 0 && k.Pid == 0 && !k.Shared
	return unnoted && p.Session == k.Session && p.Group != k.Group && k.soonAfter(p) && !k.others[p.Group] &&
		!p.isOfAnother(taskID)
}
