package cmdexec

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A process is found by its group whatever its name does to the line that describes it, and a zombie does not count.
func TestRunning(t *testing.T) {
	for _, name := range []string{"plain", "with space", ") Z 1 1 (", "\n"} {
		link := filepath.Join(t.TempDir(), name)
		ok(t, os.Symlink("/bin/sh", link))
		cmd := exec.Command(link, "-c", "read -r _")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		stdin, err := cmd.StdinPipe()
		ok(t, err)
		ok(t, cmd.Start())
		if !groupRuns(cmd.Process.Pid) {
			t.Errorf("%q runs, and is not found", name)
		}
		ok(t, stdin.Close())
		awaitExit(cmd.Process.Pid)
		if groupRuns(cmd.Process.Pid) {
			t.Errorf("%q is a zombie, and found alive", name)
		}
		_ = cmd.Wait()
	}
}
