//go:build unix

package cmdexec

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// forEver is the end of a script that has to be ended. The shell waits in wait, where its traps work at once.
const forEver = `; sleep 600 & p=$!; echo ready; while kill -0 $p; do wait $p; done 2>/dev/null`

func TestTimeoutAsksWithTERMFirst(t *testing.T) {
	tests := map[string]struct {
		code string
		want runner.Outcome
	}{
		"dies of it":       {":", runner.Outcome{Exit: 143, Signal: "SIGTERM"}},
		"handles it":       {"trap 'exit 9' TERM", runner.Outcome{Exit: 9}},
		"handles it well":  {"trap 'exit 0' TERM", runner.Outcome{}},
		"dies of another":  {"trap 'kill -HUP $$' TERM", runner.Outcome{Exit: 129, Signal: "SIGHUP"}},
		"takes a while":    {"trap 'sleep 0.05; exit 9' TERM", runner.Outcome{Exit: 9}},
		"ignores the CONT": {"trap 'exit 8' CONT; trap 'exit 9' TERM", runner.Outcome{Exit: 9}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, tt.code+forEver).start()
			r.expect("ready")
			r.timeout()
			tt.want.Error, tt.want.Message = runner.ErrorTimeout, "timed out"
			r.check(tt.want)
			if code := r.outcome.ExitCode(); code != runner.ExitTimeout {
				t.Errorf("exit code %d, want %d", code, runner.ExitTimeout)
			}
		})
	}
}

func TestTimeoutSaysWhy(t *testing.T) {
	for _, cause := range []error{fmt.Errorf("%w after 5s", runner.ErrTimeout), runner.ErrBudgetEnd} {
		r := script(t, ":"+forEver).start()
		r.expect("ready")
		r.cancel(cause)
		r.check(runner.Outcome{Exit: 143, Signal: "SIGTERM", Error: runner.ErrorTimeout, Message: cause.Error()})
	}
}

func TestTimeoutKillsWhatIgnoresTERM(t *testing.T) {
	r := script(t, "trap '' TERM"+forEver)
	r.task.Policy.KillAfter = 10 * time.Millisecond
	r.start().expect("ready")
	r.timeout()
	if rest := r.rest(); rest != "" {
		t.Errorf("the command wrote %q", rest)
	}
	r.check(runner.Outcome{Exit: 137, Signal: "SIGKILL", Error: runner.ErrorTimeout, Message: "timed out"})
}

// A grandchild that outlives its parent gets its time too, and the attempt is not over before it has ended.
func TestTimeoutWaitsForTheGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cleaned-up")
	const grandchild = `trap 'sleep 0.3; : >"$1"; exit' TERM`
	r := script(t, `trap 'exit 9' TERM; sh -c "$1" sh "$2" & wait; wait`, grandchild+forEver, file).start()
	r.expect("ready")
	r.timeout()
	r.check(runner.Outcome{Exit: 9, Error: runner.ErrorTimeout, Message: "timed out"})
	if _, err := os.Stat(file); err != nil {
		t.Error("Execute returned before the grandchild had cleaned up:", err)
	}
}

func TestTimeoutKillsTheGroup(t *testing.T) {
	tests := map[string]string{
		"leader dies of TERM":  `sh -c "$1" & wait`,
		"leader exits earlier": `trap 'exit 0' TERM; sh -c "$1" & wait; wait`,
		"leader ignores TERM":  `trap '' TERM; sh -c "$1" & wait`,
		"two generations down": `sh -c 'sh -c "$1" & wait' sh "$1" & wait`,
	}
	for name, code := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, code, "trap '' TERM"+forEver)
			r.task.Policy.KillAfter = 10 * time.Millisecond
			r.start().expect("ready")
			r.timeout()
			if o := r.end(); o.Error != runner.ErrorTimeout {
				t.Errorf("outcome %+v", o)
			}
			r.rest() // fails unless all who hold stdout die
		})
	}
}

// Whoever has left the group cannot be stopped with it, but must not be waited for either.
func TestTimeoutDoesNotWaitForADaemon(t *testing.T) {
	need(t, "setsid")
	r := script(t, `setsid sh -c 'echo $$; exec sleep 600' & wait`).start()
	pid := r.pid()
	r.timeout()
	r.check(runner.Outcome{Exit: 143, Signal: "SIGTERM", Error: runner.ErrorTimeout, Message: "timed out"})
	ok(t, syscall.Kill(pid, 0))
}

// In a shared group the command alone is signalled: the rest of the group is ourselves and who called us.
func TestTimeoutInASharedGroup(t *testing.T) {
	tests := map[string]struct {
		code      string
		killAfter time.Duration
		want      runner.Outcome
	}{
		"TERM": {"trap 'kill $p; exit 9' TERM", time.Hour, runner.Outcome{Exit: 9}},
		"KILL": {"trap '' TERM", time.Millisecond, runner.Outcome{Exit: 137, Signal: "SIGKILL"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, tt.code+"; sleep 600 & p=$!; echo $p; wait $p; wait $p")
			r.executor.SharedGroup, r.task.Policy.KillAfter = true, tt.killAfter
			r.start().pid()
			r.timeout()
			tt.want.Error, tt.want.Message = runner.ErrorTimeout, "timed out"
			r.check(tt.want)
		})
	}
}
