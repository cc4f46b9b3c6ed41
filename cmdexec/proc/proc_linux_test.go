package proc

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// A process is found by its group, whatever its name does to the line in /proc/PID/stat. A zombie is not found.
func TestProcesses(t *testing.T) {
	groupRuns := func(group int) bool {
		return len(processes(func(p info) bool { return p.Group == group })) > 0
	}
	for _, name := range []string{"plain", "with space", ") Z 1 1 (", "\n"} {
		link := filepath.Join(t.TempDir(), name)
		testkit.Must(t, os.Symlink("/bin/sh", link))
		cmd := exec.Command(link, "-c", "read -r _")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		stdin, err := cmd.StdinPipe()
		testkit.Must(t, err)
		testkit.Must(t, cmd.Start())
		if !groupRuns(cmd.Process.Pid) {
			t.Errorf("%q runs: got no process", name)
		}
		testkit.Must(t, stdin.Close())
		waitForEnd(cmd.Process.Pid)
		if groupRuns(cmd.Process.Pid) {
			t.Errorf("%q is a zombie: got a process, want none", name)
		}
		_ = cmd.Wait()
	}
}

func TestZombieIsNoSurvivor(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, cmd.Start())
	waitForEnd(cmd.Process.Pid)
	process := (&Process{pid: cmd.Process.Pid}).Token()
	if process == "" {
		t.Error("got no token for the zombie, want one")
	}
	got, err := (Survivors{}).Find(&task.Task{ID: "zombie"}, task.Attempt{Number: 1, Process: process})
	if got != "" || err != nil {
		t.Errorf("got %q, error %v, want no survivor", got, err)
	}
	testkit.Must(t, cmd.Wait())
}

// Without a descriptor for /proc, nothing is found, which does not say that nothing is left.
func TestNoListOfProcesses(t *testing.T) {
	_ = machine() // which has been asked before
	process := (&Process{pid: os.Getpid()}).Token()
	var limit unix.Rlimit
	testkit.Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	testkit.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	got, err := (Survivors{}).Find(&task.Task{ID: "other"}, task.Attempt{Number: 1, Process: process})
	testkit.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if got != "" || !errors.Is(err, errNoList) {
		t.Errorf("got %q, error %v, want %v", got, err, errNoList)
	}
}

// Process numbers mean other processes in another namespace, and nothing after a reboot.
func TestTokensFromElsewhere(t *testing.T) {
	id := bootOf(machine())
	tests := []struct {
		name  string
		token token
		seen  bool
	}{
		{"here", token{Machine: machine()}, true},
		{"after a reboot", token{Machine: "another pid:[1] time:[1]", System: system()}, true},
		{"by an older retry, after a reboot", token{Machine: "another pid:[1] time:[1]"}, true},
		{"in a container with a boot of its own",
			token{Machine: "another pid:[1] time:[1]", System: "another"}, system() == ""},
		{"after a reboot that has changed the machine-id", token{Machine: "another pid:[4026531836]", System: "another"},
			system() == "" || strings.Contains(machine(), "pid:[4026531836]")},
		{"in another pid namespace", token{Machine: id + " pid:[1] time:[1]"}, false},
		{"by an older retry", token{Machine: id + " pid:[1]"}, false},
		{"where nothing was shown", token{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.token.info = info{Pid: 1 << 30, Group: 1 << 30, Session: 1 << 30, Start: 1}
			text, err := json.Marshal(tt.token)
			testkit.Must(t, err)
			a := task.Attempt{Number: 1, Process: string(text)}
			if found, err := (Survivors{}).Find(&task.Task{ID: "elsewhere"}, a); found != "" || (err == nil) != tt.seen {
				t.Errorf("got %q, error %v, want none, seen %v", found, err, tt.seen)
			}
			a.Process = AssumeDead(a.Process)
			if found, err := (Survivors{}).Find(&task.Task{ID: "elsewhere"}, a); found != "" || err != nil {
				t.Errorf("assumed dead: got %q, error %v, want none", found, err)
			}
		})
	}
}

func TestUnwanted(t *testing.T) {
	for _, kill := range []bool{false, true} {
		if got := (Survivors{Kill: kill}).Unwanted(); got != kill {
			t.Errorf("Kill %v: got %v, want %v", kill, got, kill)
		}
	}
}

// If another process has reaped the command, nobody knows how it ended: that is no success.
func TestReapedByOthers(t *testing.T) {
	cmd := exec.Command("true")
	testkit.Must(t, cmd.Run())
	got := (&Process{pid: cmd.Process.Pid}).Reap()
	want := task.Outcome{Exit: 125, Error: task.ErrorStart, Message: "wait for the command: no child processes"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What a process of another user has open cannot be seen. One that an attempt has started may have it.
func TestHaveOpenOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can look as another user")
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	testkit.Must(t, err)
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	if HaveOpen(info) {
		t.Error("as its user: got that a process has the file open, want none")
	}
	const nobody = 65534
	runtime.LockOSThread()
	before, _ := unix.SetfsuidRetUid(nobody)
	got := HaveOpen(info)
	_ = unix.Setfsuid(before)
	runtime.UnlockOSThread()
	if !got {
		t.Error("as another user: got that no process has the file open, want that one may have it")
	}
	testkit.Must(t, stdin.Close())
	testkit.Must(t, cmd.Wait())
}

// A job that was stopped, and goes on, may still have to end by a signal that came before.
func TestAContinueKeepsASignalAlive(t *testing.T) {
	NoteSignals(false)
	await := func(sig syscall.Signal) {
		since := time.Now()
		testkit.Must(t, syscall.Kill(os.Getpid(), sig))
		for !Signalled(since, time.Now()) {
			if time.Since(since) > 10*time.Second {
				t.Fatalf("%v was not noted", sig)
			}
			time.Sleep(time.Millisecond)
		}
	}
	await(syscall.SIGUSR1)
	await(syscall.SIGCONT)
}
