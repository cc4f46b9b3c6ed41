package cmdexec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// known has the attempt's token come to the test.
func (r *rig) known() <-chan string {
	tokens := make(chan string, 10)
	r.started = func(process string) { tokens <- process }
	return tokens
}

// left is an attempt that has left processes running, and what they wrote first: their numbers.
type orphans struct {
	*rig
	attempt task.Attempt
	pids    []int
}

// leaveBehind runs a script that starts processes that write their number, and then ends. They are killed when the test is over.
func startOrphans(t *testing.T, shared bool, processes int, code string) *orphans {
	t.Helper()
	r := script(t, code+"\nread -r _; exit 3")
	r.executor.SharedGroup = shared
	r.task.ID = fmt.Sprintf("%s %d", t.Name(), os.Getpid()) // as unique as a task's
	tokens := r.known()
	r.start()
	l := &orphans{rig: r}
	for range processes {
		pid := r.pid()
		l.pids = append(l.pids, pid)
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	l.attempt = task.Attempt{Number: 1, Process: receive(t, tokens)}
	ok(t, r.stdin.Close())
	r.check(task.Outcome{Exit: 3})
	return l
}

// token is the text in the journal that tells where the processes of an attempt are found.
type token struct {
	Shared  bool   `json:"shared,omitempty"`
	Pid     int    `json:"pid"`
	Group   int    `json:"group"`
	Session int    `json:"session"`
	Start   int64  `json:"start"`
	Machine string `json:"machine"`
}

const (
	sleeper  = `sh -c 'echo $$; exec sleep 60' &`
	stubborn = `sh -c 'trap "" TERM; echo $$; exec sleep 60' &`
	daemon   = `setsid sh -c 'echo $$; exec sleep 60' &`
	outside  = `RETRY_OUTER_TASKS="$RETRY_TASK_ID" setsid sh -c 'echo $$; exec sleep 60' &`
)

func (l *orphans) find(s proc.Survivors) string { return s.Find(&l.task, l.attempt) }

func (l *orphans) checkFound(want string) {
	l.Helper()
	if got := l.find(proc.Survivors{}); got != want {
		l.Errorf("found %q, want %q", got, want)
	}
}

// gone waits until the processes have ended; whoever adopted them may leave them as zombies.
func (l *orphans) gone() {
	l.Helper()
	eventually(l.T, "they end", func() bool { return !slices.ContainsFunc(l.pids, alive) })
}

func TestSurvivorsAreFound(t *testing.T) {
	for group, shared := range map[string]bool{"own": false, "shared": true} {
		t.Run(group, func(t *testing.T) {
			l := startOrphans(t, shared, 1, sleeper)
			l.checkFound(fmt.Sprintf("process %d", l.pids[0]))
			ok(t, syscall.Kill(l.pids[0], syscall.SIGKILL))
			l.gone()
			l.checkFound("")
		})
	}
}

// A retry inside the command has its command in a group of its own.
func TestNestedSurvivors(t *testing.T) {
	nested := strings.Join(helperCommand("execute", "sh", "-c", `'echo $$; exec sleep 60' &`), " ")
	l := startOrphans(t, false, 1, nested)
	group, err := unix.Getpgid(l.pids[0])
	ok(t, err)
	if group != l.pids[0] {
		t.Fatalf("process %d is in group %d: nothing is shown", l.pids[0], group)
	}
	if found := l.find(proc.Survivors{}); found == "" {
		t.Errorf("process %d is not found", l.pids[0])
	}
	proc.Survivors{Kill: true}.Signal(&l.task, l.attempt, syscall.SIGKILL)
	l.gone()
}

// A timeout stops also what a nested retry has left in a group of its own.
func TestTimeoutKillsNestedGrandchildren(t *testing.T) {
	grandchild := `'sh -c "trap \"\" TERM; echo \$\$; exec sleep 60" & wait'`
	r := script(t, strings.Join(helperCommand("execute", "sh", "-c", grandchild), " ")+" & wait")
	r.task.ID, r.task.Policy.KillAfter = t.Name(), 10*time.Millisecond
	pid := r.start().pid()
	r.timeout()
	r.check(timedOut(143, "SIGTERM"))
	if alive(pid) {
		t.Error("it is alive when the attempt has ended")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	r.rest() // it held stdout
}

func TestSeveralSurvivors(t *testing.T) {
	l := startOrphans(t, false, 3, sleeper+sleeper+`sh -c '`+strings.ReplaceAll(sleeper, "'", `'\''`)+`'`)
	group, err := unix.Getpgid(l.pids[0])
	ok(t, err)
	l.checkFound(fmt.Sprintf("3 processes (process group %d)", group))
	for i, pid := range l.pids {
		ok(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, "it ends", func() bool { return !alive(pid) })
		l.checkFound([]string{fmt.Sprintf("2 processes (process group %d)", group), fmt.Sprintf("process %d", l.pids[2]), ""}[i])
	}
}

// While the attempt still runs, it is found itself. Its zombie is not.
func TestTheAttemptItselfIsFound(t *testing.T) {
	r := script(t, "echo $$; read -r _")
	tokens := r.known()
	pid := r.start().pid()
	attempt := task.Attempt{Number: 1, Process: receive(t, tokens)}
	if got, want := (proc.Survivors{}).Find(&r.task, attempt), fmt.Sprintf("process %d", pid); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	ok(t, r.stdin.Close())
	r.end()
	if got := (proc.Survivors{}).Find(&r.task, attempt); got != "" {
		t.Errorf("found %q when it had ended", got)
	}
}

// A daemon has left the group, as the command wanted.
func TestDaemonsDoNotCount(t *testing.T) {
	needPrograms(t, "setsid")
	tests := map[string]struct {
		shared bool
		code   string
	}{"own": {false, daemon}, "shared": {true, daemon}, "of a nested retry": {false, outside}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := startOrphans(t, tt.shared, 1, tt.code)
			if found := l.find(proc.Survivors{}); found != "" {
				t.Fatalf("found %q", found) // and do not kill it: that might be ourselves
			}
			proc.Survivors{Kill: true}.Signal(&l.task, l.attempt, syscall.SIGKILL)
			if !alive(l.pids[0]) {
				t.Error("the daemon was killed")
			}
		})
	}
}

// The numbers in a token go to other processes one day.
func TestTokensOfOthers(t *testing.T) {
	l := startOrphans(t, false, 1, sleeper)
	var real token
	ok(t, json.Unmarshal([]byte(l.attempt.Process), &real))
	others := exec.Command("sleep", "600") // not our own group: who leads that may be gone, and then a younger one of it counts
	others.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ok(t, others.Start())
	t.Cleanup(func() { _, _ = others.Process.Kill(), others.Wait() })
	tests := map[string]struct {
		change func(*token)
		found  bool
	}{
		"the same":                      {func(*token) {}, true},
		"another machine":               {func(k *token) { k.Machine = "another" }, false},
		"another session":               {func(k *token) { k.Session++ }, false},
		"another group":                 {func(k *token) { k.Group++ }, false},
		"a group of others that waited": {func(k *token) { k.Group, k.Pid = others.Process.Pid, others.Process.Pid }, false},
		"started later than all of it":  {func(k *token) { k.Start += 1 << 30 }, false},
		"a shared group":                {func(k *token) { k.Shared = true }, true}, // by the task in the environment
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			other := real
			tt.change(&other)
			text, err := json.Marshal(other)
			ok(t, err)
			attempt := task.Attempt{Number: 1, Process: string(text)}
			if got := (proc.Survivors{}).Find(&l.task, attempt); (got != "") != tt.found {
				t.Errorf("found %q", got)
			}
		})
	}
	for _, text := range []string{"{", "null", "[]", `"x"`, "{}", `{"pid":"x"}`} {
		if got := (proc.Survivors{}).Find(&l.task, task.Attempt{Number: 1, Process: text}); got != "" {
			t.Errorf("the token %s finds %q", text, got)
		}
	}
}

// A group whose leader started at another time is a later one with the same number, with all its members.
func TestGroupOfAnotherLeader(t *testing.T) {
	r := script(t, "exec 3<&0; sh -c 'echo $$; read -r _ <&3' & wait")
	tokens := r.known()
	member := r.start().pid()
	var real token
	ok(t, json.Unmarshal([]byte(receive(t, tokens)), &real))
	tests := map[string]struct {
		change func(*token)
		want   string
	}{
		"the same":              {func(*token) {}, fmt.Sprintf("2 processes (process group %d)", real.Group)},
		"another leader":        {func(k *token) { k.Start-- }, ""},
		"one in a shared group": {func(k *token) { k.Start, k.Shared = k.Start-1, true }, fmt.Sprintf("process %d", member)}, // that has been there all the time
	}
	for name, tt := range tests {
		old := real
		tt.change(&old)
		text, err := json.Marshal(old)
		ok(t, err)
		if got := (proc.Survivors{}).Find(&r.task, task.Attempt{Number: 1, Process: string(text)}); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	ok(t, r.stdin.Close())
	r.end()
}

// In a shared group only those with the task in their environment count: the others are retry itself and its caller.
func TestSharedGroupHasOthers(t *testing.T) {
	other := exec.Command("sleep", "60")
	ok(t, other.Start())
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	l := startOrphans(t, true, 1, sleeper+" env -u RETRY_TASK_ID sleep 60 & echo $! >&2")
	want := fmt.Sprintf("process %d", l.pids[0])
	eventually(t, "env has cleared what it starts with", func() bool { return l.find(proc.Survivors{}) == want })
	l.task.ID = "another"
	l.checkFound("")
}

// An attempt that was so short that its owner could not note where it is found is found by its environment.
func TestSurvivorsWithoutAToken(t *testing.T) {
	l := startOrphans(t, false, 2, sleeper+sleeper)
	token := l.attempt.Process
	l.attempt.Process = ""
	group, err := unix.Getpgid(l.pids[0])
	ok(t, err)
	l.checkFound(fmt.Sprintf("2 processes (process group %d)", group))
	l.attempt.Number = 2
	l.checkFound("")
	l.attempt.Number = 1
	l.task.ID = "another"
	l.checkFound("")
	l.attempt.Process = token
	l.checkFound(fmt.Sprintf("2 processes (process group %d)", group))
}

func TestSurvivorsAreSignalled(t *testing.T) {
	l := startOrphans(t, false, 3, sleeper+sleeper+stubborn)
	isStubborn := func(pid int) bool { return ignoresTERM(t, pid) }
	eventually(t, "one is stubborn", func() bool { return slices.ContainsFunc(l.pids, isStubborn) })
	last := l.pids[slices.IndexFunc(l.pids, isStubborn)]
	stopped := l.pids[slices.IndexFunc(l.pids, func(pid int) bool { return pid != last })]
	ok(t, syscall.Kill(stopped, syscall.SIGSTOP))
	eventually(t, "one is stopped", func() bool { return state(stopped) == "T" })
	s := proc.Survivors{Kill: true}
	s.Signal(&l.task, l.attempt, syscall.SIGTERM)
	want := fmt.Sprintf("process %d", last)
	eventually(t, "all but the stubborn one end", func() bool { return l.find(s) == want })
	s.Signal(&l.task, l.attempt, syscall.SIGKILL)
	l.gone()
	l.checkFound("")
	s.Signal(&l.task, l.attempt, syscall.SIGKILL) // nobody is there
}

// state is the letter that the system has for the state of a process.
func state(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return strings.Join(fields[:min(1, len(fields))], "")
}

func ignoresTERM(t *testing.T, pid int) bool {
	t.Helper()
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if mask, isIgnored := strings.CutPrefix(line, "SigIgn:"); isIgnored {
			bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			ok(t, err)
			return bits&(1<<(syscall.SIGTERM-1)) != 0
		}
	}
	return false
}

// Most attempts are over before it is worth to write down where they are found.
func TestAnnounce(t *testing.T) {
	token := func() string { return "token" }
	for name, tt := range map[string]struct {
		runs  time.Duration
		calls int32
	}{"short": {announceAfter - 1, 0}, "longer": {announceAfter + 1, 1}, "long": {time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				cancel := announce(token, func(string) {
					time.Sleep(time.Hour) // the journal is busy
					calls.Add(1)
				})
				time.Sleep(tt.runs)
				cancel()
				if n := calls.Load(); n != tt.calls {
					t.Errorf("called %d times before cancel returned, want %d", n, tt.calls)
				}
				time.Sleep(24 * time.Hour)
				if n := calls.Load(); n != tt.calls {
					t.Errorf("called %d times in the end, want %d", n, tt.calls)
				}
			})
		})
	}
	announce(token, nil)()
}

// The token names the process, once, and never when Execute has returned.
func TestTokenOfAnAttempt(t *testing.T) {
	r := script(t, "echo $$; read -r _")
	tokens := r.known()
	pid := r.start().pid()
	var got token
	ok(t, json.Unmarshal([]byte(receive(t, tokens)), &got))
	session, err := unix.Getsid(pid)
	ok(t, err)
	if want := (token{Pid: pid, Group: pid, Session: session, Start: got.Start, Machine: got.Machine}); got != want {
		t.Errorf("got token %+v, want %+v", got, want)
	}
	if got.Start == 0 || len(got.Machine) < 36 { // a boot id is that long
		t.Errorf("got token %+v, want a start and a machine", got)
	}
	ok(t, r.stdin.Close())
	r.end()
	if len(tokens) > 0 {
		t.Error("told twice")
	}
}

func TestNoTokenWithoutAnAttempt(t *testing.T) {
	for _, code := range []string{"/no/such/command", "/"} {
		r := newRig(t, code)
		r.started = func(process string) { t.Errorf("%s is %s", code, process) }
		r.start().end()
	}
}

func TestNoTokenAfterTheAttempt(t *testing.T) {
	for range 30 {
		var over atomic.Bool
		r := newRig(t, "sleep", "0.01") // as long as an attempt runs unknown
		r.started = func(string) {
			if over.Load() {
				t.Error("told too late")
			}
		}
		r.executor.Execute(t.Context(), &r.task, runner.Call{Number: 1, Started: r.started})
		over.Store(true)
	}
}
