package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// attempt is one of root's in a session of its own, in which no other test has processes.
type attempt struct {
	*testing.T
	task.Attempt
	task    *task.Task
	process *Process
	stdin   io.Closer
	pid     int // of the process that wrote its number
}

// sleeper writes its number. Where it is started in the background, it stays when its shell ends.
const sleeper = `sh -c 'echo $$; exec sleep 60'`

// startAttempt runs a script, which goes on until end is called.
func startAttempt(t *testing.T, code string) *attempt {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can look as another user")
	}
	id := fmt.Sprintf("%s %d", t.Name(), os.Getpid())
	a := &attempt{T: t, task: &task.Task{ID: id}, process: &Process{begun: clock()}}
	cmd := exec.Command("sh", "-c", code+"\nread -r _")
	cmd.Env = append(os.Environ(), EnvTaskID+"="+a.task.ID, EnvAttempt+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	testkit.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	a.stdin, a.process.pid = stdin, cmd.Process.Pid
	t.Cleanup(func() { _, _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	testkit.Must(t, err)
	a.pid, err = strconv.Atoi(strings.TrimSpace(line))
	testkit.Must(t, err)
	t.Cleanup(func() {
		group, _ := unix.Getpgid(a.pid)
		_ = syscall.Kill(-max(group, a.pid), syscall.SIGKILL)
	})
	a.Attempt = task.Attempt{Number: 1, Process: a.process.Token()}
	return a
}

// end ends the shell of the attempt, which stays a zombie.
func (a *attempt) end() {
	testkit.Must(a.T, a.stdin.Close())
	waitForEnd(a.process.pid)
}

// change changes the token.
func (a *attempt) change(change func(*token)) {
	var known token
	testkit.Must(a.T, json.Unmarshal([]byte(a.Process), &known))
	change(&known)
	text, err := json.Marshal(known)
	testkit.Must(a.T, err)
	a.Process = string(text)
}

// asNobody calls do as another user. The thread ends with that.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	onThread(t, nil, do)
}

// withHiddenProcesses calls do as another user, from whom /proc hides the processes of root.
func withHiddenProcesses(t *testing.T, do func()) {
	t.Helper()
	onThread(t, func() error {
		return errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"))
	}, do)
}

func onThread(t *testing.T, prepare func() error, do func()) {
	t.Helper()
	const nobody = 65534
	prepared, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if prepare != nil {
			if err := prepare(); err != nil {
				prepared <- err
				return
			}
		}
		_, _, groups := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_, _, group := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody)
		_, _, user := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		if groups != 0 || group != 0 || user != 0 {
			prepared <- errors.Join(groups, group, user)
			return
		}
		prepared <- nil
		do()
	}()
	<-done
	if err := <-prepared; err != nil {
		t.Skip("this root cannot look as another user, or mount a /proc: ", err)
	}
}

// check looks for what the attempt has left.
func (a *attempt) check(name, want, wantErr string) {
	a.Helper()
	found, err := Survivors{}.Find(a.task, a.Attempt)
	if found, _, _ = strings.Cut(found, " ("); found != want || fmt.Sprint(err) != wantErr {
		a.Errorf("%s: got %q, error %v, want %q, error %s", name, found, err, want, wantErr)
	}
}

func unread(pid int) string {
	return fmt.Sprintf("process %d (timeout) may belong to it, and its environment cannot be read by this user", pid)
}

// What shows no environment and has left the group may be of the attempt: it is in its session, and has no parent
// there.
func TestUnreadableProcesses(t *testing.T) {
	a := startAttempt(t, "timeout 60 "+sleeper+" &")
	a.end()
	timeout, err := unix.Getpgid(a.pid)
	testkit.Must(t, err)
	a.check("as its user", "2 processes", "<nil>")
	asNobody(t, func() {
		a.check("as another user", "", unread(timeout))
		process := a.Process
		a.Process = AssumeDead(process)
		a.check("assumed dead", "", "<nil>")
		a.Process = ""
		a.check("nothing noted", "", "<nil>")
		for name, change := range map[string]func(*token){
			"an older one":                       func(k *token) { k.Start += 1000 },
			"another session":                    func(k *token) { k.Session = 1 << 30 },
			"an attempt whose session has ended": func(k *token) { k.Pid, k.Group, k.Start = 1<<30, 1<<30, k.Start-1000 },
		} {
			a.Process = process
			a.change(change)
			a.check(name, "", "<nil>")
		}
	})
}

// The descendants of what is known to be of the attempt are of it too.
func TestUnreadableDescendants(t *testing.T) {
	a := startAttempt(t, "(timeout 60 "+sleeper+"; :) &")
	a.end()
	asNobody(t, func() { a.check("in a group of its own", "3 processes", "<nil>") })
}

// What has made a session of its own cannot be told from other users' daemons.
func TestUnreadableDaemonsDoNotCount(t *testing.T) {
	a := startAttempt(t, "setsid "+sleeper+" &")
	a.end()
	asNobody(t, func() { a.check("a daemon", "", "<nil>") })
}

// What shows an environment is known by that: another command has started it.
func TestReadableProcessesOfOthersDoNotCount(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("no setpriv here")
	}
	a := startAttempt(t, "env -i setpriv --reuid 65534 --regid 65534 --clear-groups timeout 60 "+sleeper+" &")
	a.end()
	a.check("as root", "", "<nil>")
	withHiddenProcesses(t, func() { a.check("as its user, who sees no others", "", "<nil>") })
}

// The jobs of a shell have it for their parent. It is older than the attempt, or shows an environment.
func TestUnreadableJobsOfOthersDoNotCount(t *testing.T) {
	const later = "read -r u _ </proc/uptime; v=$u; while [ $v = $u ]; do read -r v _ </proc/uptime; done\n"
	a := startAttempt(t, later+sleeper+" &")
	shell, _ := lookup(a.process.pid)
	job, _ := lookup(a.pid)
	all := allProcesses()
	check := func(name string, start int64, want bool) {
		known := token{info: info{Session: job.Session, Start: start}}
		if got := known.mayHaveStarted(job, all); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	check("its shell shows an environment", shell.Start, false)
	asNobody(t, func() {
		check("its shell may be of the attempt", shell.Start, true)
		check("its shell is older than the attempt", shell.Start+1, false)
	})
}

// In a container, what has lost its parent gets PID 1, which may be in its session. A parent that ends at this moment
// shows no environment any more, and its processes will be orphans.
func TestUnreadableOrphans(t *testing.T) {
	known := token{info: info{Session: 1, Start: 2}}
	init := info{Pid: 1, Session: 1, Start: 1}
	ending := info{Pid: 1 << 30, Session: 1, Start: 3, parent: 1}
	for name, parent := range map[string]info{"of PID 1": init, "of a process that ends": ending} {
		orphan := info{Pid: 1<<30 + 1, Session: 1, Start: 4, parent: parent.Pid}
		if !known.mayHaveStarted(orphan, []info{init, ending, orphan}) {
			t.Errorf("%s: got that it cannot be of the attempt, want that it may be", name)
		}
	}
}

// The same holds for what reads the stdin of a later attempt.
func TestHaveOpenBesideTheSessionOfPID1(t *testing.T) {
	init, _ := lookup(1)
	own, _ := lookup(os.Getpid())
	for name, tt := range map[string]struct {
		parent info
		want   bool
	}{
		"PID 1": {parent: init, want: true}, "another process": {parent: own},
	} {
		p := info{Pid: 1 << 30, Session: tt.parent.Session, parent: tt.parent.Pid}
		if got := mayBeOurs(p, info{Pid: 1<<30 + 1, Session: p.Session}, []info{p}); got != tt.want {
			t.Errorf("its parent is %s: got %v, want %v", name, got, tt.want)
		}
	}
}

// A guard goes on beside what it cannot look into: its reader may be another process.
func TestGuardBesideUnreadableProcesses(t *testing.T) {
	a := startAttempt(t, "timeout 60 "+sleeper+" &")
	a.end()
	asNobody(t, func() {
		if err := killAll(a.task, a.Attempt, true); err != nil {
			t.Errorf("got error %v, want none", err)
		}
	})
	if p, ok := lookup(a.pid); !ok || p.zombie {
		t.Error("what may be another's was killed")
	}
}

// A guard neither stops nor kills another guard, that of a retry inside of the attempt, which has to outlive its retry.
func TestGuardSparesAnotherGuard(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("only bash can give a program another first argument")
	}
	a := startAttempt(t, "bash -c 'echo $$; exec -a "+guardName+" sleep 60' &")
	guarding := info{Pid: a.pid}
	testkit.Eventually(t, "bash has become a guard", guarding.isGuard)
	if err := killAll(a.task, a.Attempt, true); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	waitForEnd(a.process.pid)
	if p, ok := lookup(a.pid); !ok || p.zombie || p.stopped {
		t.Errorf("got %+v, want that the other guard runs", p)
	}
}

// Where /proc hides a process, its group and its session are still known.
func TestHiddenProcesses(t *testing.T) {
	for name, code := range map[string]string{
		"in the group": sleeper + " &", "in a group of its own": "timeout 60 " + sleeper + " &",
	} {
		t.Run(name, func(t *testing.T) {
			a := startAttempt(t, code)
			a.end()
			group, err := unix.Getpgid(a.pid)
			testkit.Must(t, err)
			first := a.pid
			if group != a.process.pid {
				first = group // timeout, which has a lower number, unless these begin anew
			}
			want := fmt.Sprintf("process %d may belong to it, and /proc hides it from this user", first)
			withHiddenProcesses(t, func() {
				if _, shown := lookup(1); shown {
					t.Error("/proc hides nothing: this test shows nothing")
				}
				a.check("hidden", "", want)
				if group == a.process.pid {
					process, unused := a.Process, a.pid+500 // far from what other processes get meanwhile
					for unix.Kill(unused, 0) == nil {
						unused++
					}
					a.change(func(k *token) { k.Pid = unused })
					a.check("the numbers have begun anew", "", want)
					a.Process = process
				}
				a.change(func(k *token) { k.Session = 1 << 30 })
				a.check("in another session", "", "<nil>")
			})
		})
	}
}

// A zombie does not count, though the system finds it in its group.
func TestHiddenZombies(t *testing.T) {
	a := startAttempt(t, "echo $$")
	a.end()
	withHiddenProcesses(t, func() { a.check("a zombie", "", "<nil>") })
}

// A process that /proc hides has no start time to note. What it starts first must count, so the token has an earlier
// one.
func TestTokenOfAHiddenProcess(t *testing.T) {
	a := startAttempt(t, "echo $$")
	a.process.begun -= 1000
	withHiddenProcesses(t, func() { a.Process = a.process.Token() })
	a.change(func(k *token) {
		if k.Pid != a.process.pid || k.Start != a.process.begun {
			t.Errorf("got process %d, start %d, want %d, %d", k.Pid, k.Start, a.process.pid, a.process.begun)
		}
	})
}
