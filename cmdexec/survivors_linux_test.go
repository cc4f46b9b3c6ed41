package cmdexec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
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
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// tokens returns a channel that gets the tokens of the attempt.
func (r *rig) tokens() <-chan string {
	tokens := make(chan string, 10)
	r.started = func(process string) bool {
		tokens <- process
		return true
	}
	return tokens
}

// orphans is an attempt that has left processes running.
type orphans struct {
	*rig
	attempt task.Attempt
	pids    []int
}

// startOrphans runs a script that starts processes which write their number, and then ends. They are killed when the
// test is over.
func startOrphans(t *testing.T, shared bool, processes int, code string) *orphans {
	t.Helper()
	r := script(t, code+"\nread -r _; exit 3")
	r.executor.SharedGroup = shared
	r.task.ID = fmt.Sprintf("%s %d", t.Name(), os.Getpid()) // as unique as the id of a task
	tokens := r.tokens()
	r.start()
	l := &orphans{rig: r}
	for range processes {
		pid := r.pid()
		l.pids = append(l.pids, pid)
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	l.attempt = task.Attempt{Number: 1, Process: receive(t, tokens)}
	testkit.Must(t, r.stdin.Close())
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
	System  string `json:"system,omitempty"`
}

const (
	sleeper = `sh -c 'echo $$; exec sleep 60' &`
	// Where the group of an orphan has a stopped member and PID 1 has the session of both, as in a small virtual machine,
	// Linux sends HUP to the whole group when the orphan ends.
	stubborn = `sh -c 'trap "" HUP TERM; echo $$; exec sleep 60' &`
	daemon   = `setsid sh -c 'echo $$; exec sleep 60' &`
	bare     = `env -i sh -c 'echo $$; exec sleep 60' &` // nothing tells whose it is but its group
	timed    = `timeout 60 ` + sleeper                   // two processes in a group of their own
)

// find fails the test where survivors cannot be seen.
func find(t *testing.T, tk *task.Task, a task.Attempt) string {
	t.Helper()
	found, err := proc.Survivors{}.Find(tk, a)
	testkit.Must(t, err)
	return found
}

func nameless(found string) string {
	return regexp.MustCompile(`^(process \d+) \(.*\)$`).ReplaceAllString(found, "$1")
}

func (l *orphans) find(s proc.Survivors) string {
	found, err := s.Find(&l.task, l.attempt)
	testkit.Must(l.T, err)
	return found
}

// checkFound leaves the name out: a process that has just written its number may be about to execute another program.
func (l *orphans) checkFound(want string) {
	l.Helper()
	if got := nameless(l.find(proc.Survivors{})); got != want {
		l.Errorf("got %q, want %q", got, want)
	}
}

// awaitEnd waits until the processes have ended. Their new parent may leave them as zombies.
func (l *orphans) awaitEnd() {
	l.Helper()
	testkit.Eventually(l.T, "they end", func() bool { return !slices.ContainsFunc(l.pids, alive) })
}

func TestSurvivorsAreFound(t *testing.T) {
	for group, shared := range map[string]bool{"own": false, "shared": true} {
		t.Run(group, func(t *testing.T) {
			l := startOrphans(t, shared, 1, sleeper)
			l.checkFound(fmt.Sprintf("process %d", l.pids[0]))
			testkit.Must(t, syscall.Kill(l.pids[0], syscall.SIGKILL))
			l.awaitEnd()
			l.checkFound("")
		})
	}
}

// A nested retry runs its command in a group of its own.
func TestNestedSurvivors(t *testing.T) {
	nested := strings.Join(helperCommand("execute", "sh", "-c", `'echo $$; exec sleep 60' &`), " ")
	l := startOrphans(t, false, 1, nested)
	group, err := unix.Getpgid(l.pids[0])
	testkit.Must(t, err)
	if group != l.pids[0] {
		t.Fatalf("process %d is in group %d: this test shows nothing", l.pids[0], group)
	}
	if found := l.find(proc.Survivors{}); found == "" {
		t.Errorf("process %d is not found", l.pids[0])
	}
	proc.Survivors{Kill: true}.Signal(&l.task, l.attempt, syscall.SIGKILL)
	l.awaitEnd()
}

// A timeout also stops what a nested retry runs in a group of its own.
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
	r.rest() // returns only if it has closed stdout
}

func TestSeveralSurvivors(t *testing.T) {
	l := startOrphans(t, false, 3, sleeper+sleeper+`sh -c '`+strings.ReplaceAll(sleeper, "'", `'\''`)+`'`)
	group, err := unix.Getpgid(l.pids[0])
	testkit.Must(t, err)
	l.checkFound(fmt.Sprintf("3 processes (process group %d)", group))
	for i, pid := range l.pids {
		testkit.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		testkit.Eventually(t, "it ends", func() bool { return !alive(pid) })
		l.checkFound([]string{
			fmt.Sprintf("2 processes (process group %d)", group), fmt.Sprintf("process %d", l.pids[2]), "",
		}[i])
	}
}

// While the attempt runs, it is found itself, but not as a zombie.
func TestTheAttemptItselfIsFound(t *testing.T) {
	r := script(t, "echo $$; read -r _")
	tokens := r.tokens()
	pid := r.start().pid()
	attempt := task.Attempt{Number: 1, Process: receive(t, tokens)}
	if got, want := find(t, &r.task, attempt), fmt.Sprintf("process %d (sh)", pid); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	testkit.Must(t, r.stdin.Close())
	r.end()
	if got := find(t, &r.task, attempt); got != "" {
		t.Errorf("after the end: got %q, want nothing", got)
	}
}

// What has left the group, and even the session, is known by its environment, and by the number of its attempt.
func TestSurvivorsOutsideTheGroup(t *testing.T) {
	needPrograms(t, "setsid", "timeout")
	tests := map[string]struct {
		shared bool
		code   string
		count  int
	}{
		"a group":                 {code: timed, count: 2},
		"a session":               {code: daemon, count: 1},
		"a session on a terminal": {shared: true, code: daemon, count: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := startOrphans(t, tt.shared, 1, tt.code)
			group, err := unix.Getpgid(l.pids[0])
			testkit.Must(t, err)
			want := fmt.Sprintf("process %d", l.pids[0])
			if tt.count > 1 {
				want = fmt.Sprintf("%d processes (process group %d)", tt.count, group)
			}
			l.checkFound(want)
			other := *l
			other.attempt.Number = 0
			other.checkFound(want) // the journal may have failed before this attempt, and know an earlier one
			unrecorded := func(last int) string {
				other.task.Last.Number = last
				found, _ := proc.Survivors{}.FindUnrecorded(&other.task)
				return nameless(found)
			}
			if got := unrecorded(0); got != want {
				t.Errorf("of an attempt that the journal does not know: got %q, want %q", got, want)
			}
			if got := unrecorded(1); got != "" {
				t.Errorf("of one that it knows: got %q, want nothing", got)
			}
			other.attempt.Number = 2
			other.checkFound("") // a daemon that a finished attempt has left behind on purpose
			proc.Survivors{Kill: true}.Signal(&other.task, other.attempt, syscall.SIGKILL)
			l.checkFound(want)
			proc.Survivors{Kill: true}.Signal(&l.task, l.attempt, syscall.SIGKILL)
			l.awaitEnd()
		})
	}
}

// A process without its main thread looks like a zombie, and has no environment to show.
func TestSurvivorsWithoutTheirMainThread(t *testing.T) {
	for name, args := range map[string][]string{"in the group": nil, "in a session": {"setsid"}} {
		t.Run(name, func(t *testing.T) {
			l := startOrphans(t, false, 1, strings.Join(helperCommand("threads", args...), " ")+" &")
			testkit.Eventually(t, "its main thread ends", func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pids[0]))
				return err == nil && strings.Contains(string(stat), ") Z ")
			})
			l.checkFound(fmt.Sprintf("process %d", l.pids[0]))
			proc.Survivors{Kill: true}.Signal(&l.task, l.attempt, syscall.SIGKILL)
			testkit.Eventually(t, "its other threads end", func() bool { return l.find(proc.Survivors{}) == "" })
		})
	}
}

// An execve takes the environment away for a moment.
func TestSurvivorsThatExecuteAreAlwaysFound(t *testing.T) {
	needPrograms(t, "setsid")
	l := startOrphans(t, false, 1, `setsid sh -c 'echo $$; export x='"'"'exec sh -c "$x"'"'"'; exec sh -c "$x"' &`)
	for look := range 200 {
		if got := nameless(l.find(proc.Survivors{})); got != fmt.Sprintf("process %d", l.pids[0]) {
			t.Fatalf("look %d: got %q, want process %d", look, got, l.pids[0])
		}
	}
}

// All groups are named, so that a person can look at them.
func TestSurvivorsInSeveralGroups(t *testing.T) {
	needPrograms(t, "setsid")
	l := startOrphans(t, false, 2, daemon+daemon)
	slices.SortFunc(l.pids, func(a, b int) int { return strings.Compare(strconv.Itoa(a), strconv.Itoa(b)) })
	l.checkFound(fmt.Sprintf("2 processes (process groups %d, %d)", l.pids[0], l.pids[1]))
}

// A daemon that a nested retry has started is in another session, which does not tell which attempt it belongs to. It
// counts where its environment does.
func TestNestedDaemons(t *testing.T) {
	needPrograms(t, "setsid")
	tests := map[string]struct {
		outer   string
		attempt int
		found   bool
	}{
		"of this attempt":         {outer: "inner:7,$RETRY_TASK_ID:1,outermost:7", attempt: 1, found: true},
		"of an earlier attempt":   {outer: "inner:7,$RETRY_TASK_ID:1,outermost:7", attempt: 2},
		"of a later attempt":      {outer: "$RETRY_TASK_ID:3", attempt: 2, found: true},
		"started by an older one": {outer: "inner,$RETRY_TASK_ID", attempt: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := startOrphans(t, false, 1, `RETRY_OUTER_TASKS="`+tt.outer+`" RETRY_TASK_ID=innermost `+daemon)
			l.attempt.Number = tt.attempt
			if found := l.find(proc.Survivors{}); (found != "") != tt.found {
				t.Fatalf("got %q, want something: %v", found, tt.found) // not Errorf: the KILL below might hit this process
			}
			proc.Survivors{Kill: true}.Signal(&l.task, l.attempt, syscall.SIGKILL)
			if tt.found {
				l.awaitEnd()
			} else if !alive(l.pids[0]) {
				t.Error("the daemon was killed")
			}
		})
	}
}

// Of an attempt that began while the journal could not be written there is a note alone. It leads to the group.
func TestSurvivorsOfALaterAttempt(t *testing.T) {
	l := startOrphans(t, false, 1, bare)
	l.attempt.Later = 2
	if !l.attempt.CutOff() {
		t.Error("got an attempt that was not cut off, want one that was")
	}
	l.checkFound(fmt.Sprintf("process %d", l.pids[0]))
}

// A retry that was killed before it could note the group has noted its session and the time.
func TestSurvivorsOfARetryKilledAtOnce(t *testing.T) {
	l := startOrphans(t, false, 1, bare)
	group, err := unix.Getpgid(l.pids[0])
	testkit.Must(t, err)
	var real token
	testkit.Must(t, json.Unmarshal([]byte(l.attempt.Process), &real))
	tests := map[string]struct {
		change func(*token)
		found  bool
	}{
		"before the start":         {change: func(*token) {}, found: true},
		"long before the start":    {change: func(k *token) { k.Start -= 1000 }},
		"after the start":          {change: func(k *token) { k.Start += 1000 }},
		"in another session":       {change: func(k *token) { k.Session++ }},
		"in the group of retry":    {change: func(k *token) { k.Group = group }},
		"sharing a group":          {change: func(k *token) { k.Shared = true }},
		"on another boot":          {change: func(k *token) { k.Machine = "another" }},
		"as an attempt that ended": {change: func(k *token) { *k = token{} }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			unnoted := real
			unnoted.Pid, unnoted.Group = 0, syscall.Getpgrp()
			tt.change(&unnoted)
			text, err := json.Marshal(unnoted)
			testkit.Must(t, err)
			found := find(t, &l.task, task.Attempt{Number: 1, Process: string(text)})
			shown := regexp.MustCompile(fmt.Sprintf(`\b(%d|%d)\b`, l.pids[0], group)) // others may be in our session
			if got := shown.MatchString(found); got != tt.found {
				t.Errorf("got %q, want process %d: %v", found, l.pids[0], tt.found)
			}
		})
	}
}

// Where nobody could note which group it was, what names another task is not taken for it: --kill-orphans would end it.
func TestSurvivorsOfAnotherTaskAreSpared(t *testing.T) {
	l := startOrphans(t, false, 1, sleeper)
	var unnoted token
	testkit.Must(t, json.Unmarshal([]byte(l.attempt.Process), &unnoted))
	shown := regexp.MustCompile(fmt.Sprintf(`\b(%d|%d)\b`, l.pids[0], unnoted.Group)) // others may be in our session
	unnoted.Pid, unnoted.Group = 0, syscall.Getpgrp()
	text, err := json.Marshal(unnoted)
	testkit.Must(t, err)
	for id, want := range map[string]bool{l.task.ID: true, "another": false} {
		found := find(t, &task.Task{ID: id}, task.Attempt{Number: 1, Process: string(text)})
		if got := shown.MatchString(found); got != want {
			t.Errorf("task %s: got %q, want process %d: %v", id, found, l.pids[0], want)
		}
	}
}

// The numbers in a token may belong to other processes today.
func TestTokensOfOthers(t *testing.T) {
	l := startOrphans(t, false, 1, bare)
	var real token
	testkit.Must(t, json.Unmarshal([]byte(l.attempt.Process), &real))
	// In a group of its own: the leader of our group may have ended, and then its younger members count.
	others := exec.Command("sleep", "600")
	others.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, others.Start())
	t.Cleanup(func() { _, _ = others.Process.Kill(), others.Wait() })
	tests := map[string]struct {
		change func(*token)
		found  bool
	}{
		"the same":        {change: func(*token) {}, found: true},
		"another machine": {change: func(k *token) { k.Machine = "another" }},
		"another session": {change: func(k *token) { k.Session++ }},
		"another group":   {change: func(k *token) { k.Group++ }},
		"a group of others that waited": {
			change: func(k *token) { k.Group, k.Pid = others.Process.Pid, others.Process.Pid },
		},
		"started later than all of it": {change: func(k *token) { k.Start += 1 << 30 }},
		"a shared group":               {change: func(k *token) { k.Shared = true }}, // where the environment decides
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			other := real
			tt.change(&other)
			text, err := json.Marshal(other)
			testkit.Must(t, err)
			attempt := task.Attempt{Number: 1, Process: string(text)}
			if got := find(t, &l.task, attempt); (got != "") != tt.found {
				t.Errorf("got %q, want something: %v", got, tt.found)
			}
		})
	}
	for _, text := range []string{"{", "null", "[]", `"x"`, "{}", `{"pid":"x"}`} {
		if got := find(t, &l.task, task.Attempt{Number: 1, Process: text}); got != "" {
			t.Errorf("token %s: got %q, want nothing", text, got)
		}
	}
}

// If the leader was started at another time, the whole group is a later one with the same number.
func TestGroupOfAnotherLeader(t *testing.T) {
	r := script(t, "exec 3<&0; env -i sh -c 'echo $$; read -r _ <&3' & wait")
	tokens := r.tokens()
	r.start().pid()
	var real token
	testkit.Must(t, json.Unmarshal([]byte(receive(t, tokens)), &real))
	tests := map[string]struct {
		change func(*token)
		want   string
	}{
		"the same": {
			change: func(*token) {}, want: fmt.Sprintf("2 processes (process group %d)", real.Group),
		},
		"another leader": {change: func(k *token) { k.Start-- }},
	}
	for name, tt := range tests {
		old := real
		tt.change(&old)
		text, err := json.Marshal(old)
		testkit.Must(t, err)
		if got := find(t, &r.task, task.Attempt{Number: 1, Process: string(text)}); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	testkit.Must(t, r.stdin.Close())
	r.end()
}

// In a shared group only processes with the task in their environment count. The others are retry itself and its
// caller.
func TestSharedGroupHasOthers(t *testing.T) {
	other := exec.Command("sleep", "60")
	testkit.Must(t, other.Start())
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	l := startOrphans(t, true, 1, sleeper+" env -u RETRY_TASK_ID sleep 60 & echo $! >&2")
	want := fmt.Sprintf("process %d", l.pids[0])
	testkit.Eventually(t, "env has cleared what it starts with",
		func() bool { return nameless(l.find(proc.Survivors{})) == want })
	l.task.ID = "another"
	l.checkFound("")
}

// The processes of an attempt without a token are found by their environment.
func TestSurvivorsWithoutAToken(t *testing.T) {
	l := startOrphans(t, false, 2, sleeper+sleeper)
	token := l.attempt.Process
	l.attempt.Process = ""
	group, err := unix.Getpgid(l.pids[0])
	testkit.Must(t, err)
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
	testkit.Eventually(t, "one is stubborn", func() bool { return slices.ContainsFunc(l.pids, isStubborn) })
	last := l.pids[slices.IndexFunc(l.pids, isStubborn)]
	stopped := l.pids[slices.IndexFunc(l.pids, func(pid int) bool { return pid != last })]
	testkit.Must(t, syscall.Kill(stopped, syscall.SIGSTOP))
	testkit.Eventually(t, "one is stopped", func() bool { return state(stopped) == "T" })
	s := proc.Survivors{Kill: true}
	t.Cleanup(func() {
		for _, pid := range l.pids {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if t.Failed() {
				t.Logf("process %d: %v\n%s\n%s", pid, err, stat, status)
			}
		}
		if t.Failed() {
			t.Logf("stubborn %d, stopped %d, found %q, token %s", last, stopped, l.find(s), l.attempt.Process)
		}
	})
	s.Signal(&l.task, l.attempt, syscall.SIGTERM)
	want := fmt.Sprintf("process %d", last)
	testkit.Eventually(t, "all but the stubborn one end", func() bool { return nameless(l.find(s)) == want })
	s.Signal(&l.task, l.attempt, syscall.SIGKILL)
	l.awaitEnd()
	l.checkFound("")
	s.Signal(&l.task, l.attempt, syscall.SIGKILL) // there is no process any more
}

// state returns the letter that Linux uses for the state of a process.
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
			testkit.Must(t, err)
			return bits&(1<<(syscall.SIGTERM-1)) != 0
		}
	}
	return false
}

// An attempt that ends before announceAfter is only noted. What could not be stored is tried again until the end.
func TestAnnounce(t *testing.T) {
	token := func() string { return "token" }
	for name, tt := range map[string]struct {
		runs     time.Duration
		failures int32
		calls    int32
	}{
		"short":                     {runs: announceAfter - 1},
		"longer":                    {runs: announceAfter + 1, calls: 1},
		"long":                      {runs: 9 * time.Hour, calls: 1},
		"long, stored at last":      {runs: 9 * time.Hour, failures: 2, calls: 3},
		"ended before it is stored": {runs: 90 * time.Minute, failures: 9, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				cancel := announce(token, func(string) bool {
					time.Sleep(time.Hour) // as a busy journal does
					return calls.Add(1) > tt.failures
				})
				time.Sleep(tt.runs)
				cancel()
				if n := calls.Load(); n != tt.calls {
					t.Errorf("calls before cancel returned: got %d, want %d", n, tt.calls)
				}
				time.Sleep(24 * time.Hour)
				if n := calls.Load(); n != tt.calls {
					t.Errorf("calls in the end: got %d, want %d", n, tt.calls)
				}
			})
		})
	}
	announce(token, nil)()
}

// Started is called once, with the token of the process.
func TestTokenOfAnAttempt(t *testing.T) {
	r := script(t, "echo $$; read -r _")
	tokens := r.tokens()
	pid := r.start().pid()
	var got token
	testkit.Must(t, json.Unmarshal([]byte(receive(t, tokens)), &got))
	session, err := unix.Getsid(pid)
	testkit.Must(t, err)
	want := token{Pid: pid, Group: pid, Session: session, Start: got.Start, Machine: got.Machine, System: got.System}
	if got != want {
		t.Errorf("got token %+v, want %+v", got, want)
	}
	if got.Start == 0 || len(got.Machine) < 36 { // a boot id is that long
		t.Errorf("got token %+v, want a start and a machine", got)
	}
	testkit.Must(t, r.stdin.Close())
	r.end()
	if len(tokens) > 0 {
		t.Error("Started was called twice")
	}
}

// There is a token before the process is. The one that is there as soon as the process is finds a member of its group
// that has cleared its environment.
func TestEarlyToken(t *testing.T) {
	for group, shared := range map[string]bool{"own": false, "shared": true} {
		t.Run(group, func(t *testing.T) {
			r := script(t, "exec 3<&0; env -i sh -c 'echo $$; read -r _ <&3' & wait")
			r.executor.SharedGroup = shared
			tokens := make(chan string, 10)
			r.starting = func(token string) { tokens <- token }
			r.start().pid()
			var unnoted token
			testkit.Must(t, json.Unmarshal([]byte(receive(t, tokens)), &unnoted))
			if unnoted.Pid != 0 || unnoted.Group != syscall.Getpgrp() || unnoted.Start == 0 || unnoted.Machine == "" {
				t.Errorf("before the start: got %+v, want all but the process", unnoted)
			}
			attempt := task.Attempt{Number: 1, Process: receive(t, tokens)}
			var early token
			testkit.Must(t, json.Unmarshal([]byte(attempt.Process), &early))
			found := find(t, &r.task, attempt)
			want := fmt.Sprintf("2 processes (process group %d)", early.Group)
			if shared { // where the environment tells whose a process is
				want = fmt.Sprintf("process %d (sh)", early.Pid)
			}
			if found != want {
				t.Errorf("got %q, want %q", found, want)
			}
			testkit.Must(t, r.stdin.Close())
			r.end()
			if len(tokens) > 0 {
				t.Error("Starting was called a third time")
			}
		})
	}
}

// Where nothing outlives a signal that ended an attempt, a resume need not look.
func TestNothingIsLeftAfterASignal(t *testing.T) {
	r := script(t, "echo $$; exec sleep 60")
	var stored []string
	r.started = func(process string) bool {
		stored = append(stored, process)
		return true
	}
	r.start().pid()
	r.signals <- syscall.SIGTERM
	r.end()
	if len(stored) == 0 || stored[len(stored)-1] != proc.NothingLeft {
		t.Errorf("got %q stored, want %q at last", stored, proc.NothingLeft)
	}
}

func TestNoTokenWithoutAnAttempt(t *testing.T) {
	for _, code := range []string{"/no/such/command", "/"} {
		r := newRig(t, code)
		r.started = func(process string) bool {
			t.Errorf("%s: Started was called with %s", code, process)
			return true
		}
		r.start().end()
	}
}

func TestNoTokenAfterTheAttempt(t *testing.T) {
	for range 30 {
		var over atomic.Bool
		r := newRig(t, "sleep", "0.01") // as long as announceAfter
		r.started = func(string) bool {
			if over.Load() {
				t.Error("Started was called after Execute had returned")
			}
			return true
		}
		r.executor.Execute(t.Context(), &r.task, runner.Call{Number: 1, Started: r.started})
		over.Store(true)
	}
}
