//go:build unix

package cmdexec

import (
	"io"
	"os/exec"
	"testing"

	"github.com/10f93571/retry/task"
)

func TestOutcomeOfAnEnd(t *testing.T) {
	tests := []struct {
		code string
		want task.Outcome
	}{
		{"exit 0", task.Outcome{}},
		{"exit 1", task.Outcome{Exit: 1}},
		{"exit 127", task.Outcome{Exit: 127}}, // said by the command, so no start failure
		{"exit 255", task.Outcome{Exit: 255}},
		{"kill -HUP $$", task.Outcome{Exit: 129, Signal: "SIGHUP"}},
		{"kill -INT $$", task.Outcome{Exit: 130, Signal: "SIGINT"}},
		{"kill -KILL $$", task.Outcome{Exit: 137, Signal: "SIGKILL"}},
		{"ulimit -c 0; kill -SEGV $$", task.Outcome{Exit: 139, Signal: "SIGSEGV"}},
		{"kill -TERM $$", task.Outcome{Exit: 143, Signal: "SIGTERM"}},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			r := script(t, tt.code).start()
			r.check(tt.want)
			if got := r.outcome.ExitCode(); got != tt.want.Exit {
				t.Errorf("exit code %d, want %d", got, tt.want.Exit)
			}
		})
	}
}

// What a command leaves behind keeps its streams, lives on, and is no reason to wait.
func TestLeavesADaemonAlone(t *testing.T) {
	tests := map[string][]string{
		"in the group":            {},
		"in a session of its own": {"setsid"},
	}
	for name, wrapper := range tests {
		t.Run(name, func(t *testing.T) {
			need(t, wrapper...)
			r := script(t, `exec 3<&0; "$@" & exit 3`, append(wrapper, "sh", "-c", `read -r x <&3; echo "$x"`)...)
			r.start().check(task.Outcome{Exit: 3})
			_, err := io.WriteString(r.stdin, "still here\n")
			ok(t, err)
			r.expect("still here")
		})
	}
}

// need skips a test where the system lacks a program.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
}
