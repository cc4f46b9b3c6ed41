package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

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
	if got := (Survivors{}).Find(&task.Task{}, task.Attempt{Process: process}); got != "" {
		t.Errorf("got %q, want no survivor", got)
	}
	testkit.Must(t, cmd.Wait())
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
