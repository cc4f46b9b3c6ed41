//go:build unix

package cmdexec

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// timedOut returns the outcome of an attempt that was ended by rig.timeout.
func timedOut(exit int, signal string) task.Outcome {
	return task.Outcome{Exit: exit, Signal: signal, Error: task.ErrorTimeout, Message: "timed out"}
}

func TestTimeoutAsksWithTERMFirst(t *testing.T) {
	tests := map[string]struct {
		code string
		want task.Outcome
	}{
		"dies of it":         {code: ":", want: timedOut(143, "SIGTERM")},
		"handles it":         {code: "trap 'exit 9' TERM", want: timedOut(9, "")},
		"handles it well":    {code: "trap 'exit 0' TERM", want: timedOut(0, "")},
		"dies of another":    {code: "trap 'kill -HUP $$' TERM", want: timedOut(129, "SIGHUP")},
		"takes a while":      {code: "trap 'sleep 0.05; exit 9' TERM", want: timedOut(9, "")},
		"before it goes on":  {code: "trap 'exit 8' CONT; trap 'exit 9' TERM", want: timedOut(9, "")},
		"goes on afterwards": {code: "trap 'exit 8' CONT; trap : TERM", want: timedOut(8, "")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, tt.code+untilStopped).start()
			r.expect("ready")
			r.timeout()
			r.check(tt.want)
			if code := r.outcome.ExitCode(); code != task.ExitTimeout {
				t.Errorf("exit code: got %d, want %d", code, task.ExitTimeout)
			}
		})
	}
}

func TestTimeoutSaysWhy(t *testing.T) {
	for _, cause := range []error{fmt.Errorf("%w after 5s", runner.ErrTimeout), runner.ErrBudgetEnd} {
		r := script(t, ":"+untilStopped).start()
		r.expect("ready")
		r.cancel(cause)
		r.check(task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout, Message: cause.Error()})
	}
}

func TestTimeoutKillsWhatIgnoresTERM(t *testing.T) {
	r := script(t, "trap '' TERM"+untilStopped)
	r.task.Policy.KillAfter = 10 * time.Millisecond
	r.start().expect("ready")
	r.timeout()
	r.check(timedOut(137, "SIGKILL"))
}

// withGrandchild returns a script for the leader of a group. Its child runs $1.
func withGrandchild(leader string) string { return leader + `; sh -c "$1" sh "$2" & wait; wait` }

// A grandchild that outlives the leader has until KILL too, and Execute waits for its end.
func TestTimeoutWaitsForTheGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cleaned-up")
	grandchild := `trap 'sleep 0.3; : >"$1"; exit' TERM` + untilStopped
	r := script(t, withGrandchild("trap 'exit 9' TERM"), grandchild, file).start()
	r.expect("ready")
	r.timeout()
	r.check(timedOut(9, ""))
	if _, err := os.Stat(file); err != nil {
		t.Error("Execute returned before the grandchild had cleaned up:", err)
	}
}

func TestTimeoutKillsTheGroup(t *testing.T) {
	tests := map[string]struct {
		leader string
		want   task.Outcome
	}{
		"leader dies of TERM": {leader: ":", want: timedOut(143, "SIGTERM")},
		"leader ignores TERM": {leader: "trap '' TERM", want: timedOut(137, "SIGKILL")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, withGrandchild(tt.leader), "trap '' TERM; echo $$"+untilStopped)
			r.task.Policy.KillAfter = 10 * time.Millisecond
			grandchild := r.start().pid()
			r.expect("ready")
			r.timeout()
			r.check(tt.want)
			if alive(grandchild) {
				t.Error("the grandchild is alive when the attempt has ended")
			}
			r.rest() // returns only if the grandchild has closed stdout
		})
	}
}

// One that has a group of its own, as job control makes it, ends with the attempt.
func TestTimeoutReachesOtherGroups(t *testing.T) {
	needPrograms(t, "timeout")
	tests := map[string]string{
		"timeout":            `timeout 60 sh -c 'echo $$; exec sleep 60'`,
		"job control":        `set -m; sh -c 'echo $$; exec sleep 60' & wait`,
		"one that goes on":   `timeout 60 sh -c 'trap "" TERM; echo $$; sleep 60; sleep 60'`,
		"behind its command": `timeout 60 sh -c 'echo $$; exec sleep 60' & sleep 60`,
	}
	for name, code := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, code)
			r.task.Policy.KillAfter = 100 * time.Millisecond
			r.start()
			left := r.pid()
			r.timeout()
			r.end()
			if alive(left) {
				t.Errorf("process %d outlived the attempt", left)
			}
		})
	}
}

// A process that has left the session is neither stopped nor waited for.
func TestTimeoutDoesNotWaitForADaemon(t *testing.T) {
	needPrograms(t, "setsid")
	r := script(t, `setsid sh -c 'echo $$; exec sleep 60' & wait`).start()
	daemon := r.pid()
	r.timeout()
	r.check(timedOut(143, "SIGTERM"))
	if !alive(daemon) {
		t.Fatal("the daemon did not outlive the attempt: this test shows nothing")
	}
	testkit.Must(t, syscall.Kill(daemon, syscall.SIGKILL))
}

// In a shared group only processes of the command get the signal. The others are retry itself and its caller.
func TestTimeoutInASharedGroup(t *testing.T) {
	tests := map[string]struct {
		code      string
		killAfter time.Duration
		want      task.Outcome
	}{
		"TERM": {code: "trap 'exit 9' TERM", killAfter: time.Hour, want: timedOut(9, "")},
		"KILL": {code: "trap '' TERM", killAfter: 10 * time.Millisecond, want: timedOut(137, "SIGKILL")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, tt.code+untilStopped)
			r.executor.SharedGroup, r.task.Policy.KillAfter = true, tt.killAfter
			r.start().expect("ready")
			r.timeout()
			r.check(tt.want)
		})
	}
}

// The processes of a command are found in a shared group by their environment.
func TestTimeoutKillsGrandchildrenInASharedGroup(t *testing.T) {
	r := script(t, `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.02; done' & wait`)
	r.executor.SharedGroup, r.task.Policy.KillAfter = true, 10*time.Millisecond
	grandchild := r.start().pid()
	r.timeout()
	r.check(timedOut(143, "SIGTERM"))
	if alive(grandchild) {
		t.Error("the grandchild is alive when the attempt has ended")
	}
	r.rest() // returns only if the grandchild has closed stdout
}
