//go:build unix

package cmdexec

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// hookRig runs hooks of a task whose second attempt has exited with 75.
type hookRig struct {
	*testing.T
	hooks   Hooks
	task    task.Task
	signals chan os.Signal
}

func newHookRig(t *testing.T) *hookRig {
	t.Helper()
	return &hookRig{
		T: t,
		hooks: Hooks{
			Executor: &Executor{Stdin: stdio.NullStdin{}, Output: heldOutput(t, task.OutputFinal), Env: os.Environ()},
			Stderr:   newFile(t, t.TempDir(), "stderr"),
		},
		task: task.Task{
			ID: "task", IdempotencyKey: "key", Status: task.Pending, AttemptCount: 2,
			Policy: task.Policy{Attempts: 5, KillAfter: time.Hour},
			Last:   task.Attempt{Number: 2, Outcome: task.Outcome{Exit: 75}},
		},
		signals: make(chan os.Signal),
	}
}

func (r *hookRig) run(command string) (os.Signal, error) {
	return r.hooks.Run(r.Context(), &r.task, command, r.signals)
}

// prints checks what a hook that succeeds writes to stderr.
func (r *hookRig) prints(command, want string) {
	r.Helper()
	if sig, err := r.run(command); sig != nil || err != nil {
		r.Errorf("%q: got %v, %v; want no signal and no error", command, sig, err)
	}
	checkText(r.T, command, contents(r.T, r.hooks.Stderr), want)
}

// whenReady calls do when the hook has written something, or after patience.
func (r *hookRig) whenReady(do func()) {
	r.Helper()
	ready, said := pipe(r.T)
	r.hooks.Stderr = said
	testkit.Must(r, ready.SetReadDeadline(time.Now().Add(patience)))
	go func() {
		_, _ = ready.Read(make([]byte, 1))
		do()
	}()
}

func TestHookKnowsTheTask(t *testing.T) {
	const all = `for n in STATUS TASK_ID IDEMPOTENCY_KEY ATTEMPT MAX_ATTEMPTS LAST_EXIT; do
		eval "echo \${RETRY_$n-unset}"; done`
	exit := func(o task.Outcome) func(*task.Task) { return func(t *task.Task) { t.Last.Outcome = o } }
	tests := map[string]struct {
		change func(*task.Task)
		want   string
	}{
		"retry": {change: func(*task.Task) {}, want: "PENDING task key 2 5 75"},
		"success": {
			change: func(t *task.Task) { t.Status, t.Last.Outcome = task.Succeeded, task.Outcome{} },
			want:   "SUCCEEDED task key 2 5 0",
		},
		"failure": {change: func(t *task.Task) { t.Status = task.Exhausted }, want: "EXHAUSTED task key 2 5 75"},
		"signal":  {change: exit(task.Outcome{Exit: 137, Signal: "SIGKILL"}), want: "PENDING task key 2 5 137"},
		"timeout": {
			change: exit(task.Outcome{Exit: 143, Error: task.ErrorTimeout}), want: "PENDING task key 2 5 124",
		},
		"crash": {change: exit(task.Crashed()), want: "PENDING task key 2 5 unset"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newHookRig(t)
			r.hooks.Executor.Env = append(os.Environ(), "RETRY_STATUS=outer", "RETRY_LAST_EXIT=outer",
				"RETRY_ATTEMPT=outer")
			tt.change(&r.task)
			r.prints(all, strings.Join(strings.Fields(tt.want), "\n")+"\n")
		})
	}
}

// A hook has streams of its own, since stdin and stdout belong to the command.
func TestHookStreams(t *testing.T) {
	r := newHookRig(t)
	r.prints("cat; echo out; echo err >&2", "out\nerr\n")
	if text := contents(t, r.hooks.Executor.Output.Stdout); text != "" {
		t.Errorf("stdout: got %q, want nothing", text)
	}
	if sig, err := r.hooks.Executor.Flush(&r.task, nil); sig != nil || err != nil {
		t.Errorf("flush after a hook: got %v, %v; want nothing", sig, err)
	}
}

func TestHookRunsInTheTasksDirectory(t *testing.T) {
	r := newHookRig(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	r.hooks.Executor.Dir = dir
	r.prints("pwd; pwd -P", dir+"\n"+dir+"\n")
}

func TestHookThatFails(t *testing.T) {
	for command, want := range map[string]string{
		"exit 3":                 "exit status 3",
		"no-such-command 2>&-":   "exit status 127",
		"kill -KILL $$":          "SIGKILL",
		"kill -TERM $$; sleep 9": "SIGTERM",
	} {
		sig, err := newHookRig(t).run(command)
		if sig != nil || err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v; want error %s", command, sig, err, want)
		}
	}
}

func TestHookThatCannotStart(t *testing.T) {
	r := newHookRig(t)
	r.hooks.Executor.Dir = filepath.Join(t.TempDir(), "missing")
	_, err := r.run("echo started")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), r.hooks.Executor.Dir) {
		t.Errorf("missing directory: got error %v, want %v", err, fs.ErrNotExist)
	}
	r.hooks.Executor.Dir = ""
	_, err = r.run(strings.Repeat(" ", 4<<20))
	if !errors.Is(err, syscall.E2BIG) {
		t.Errorf("command too long: got error %v, want %v", err, syscall.E2BIG)
	}
	checkText(t, "printed", contents(t, r.hooks.Stderr), "")
}

// A signal is passed on. Run returns the first one that asks to stop, and then no error, however the hook ends.
func TestHookGetsSignals(t *testing.T) {
	tests := map[string]struct {
		hook    string
		signals []os.Signal
		want    os.Signal
		err     string
	}{
		"TERM": {
			hook: "trap 'echo TERM >&2; exit 3' TERM", signals: []os.Signal{syscall.SIGTERM},
			want: syscall.SIGTERM,
		},
		"TERM that ends it": {hook: ":", signals: []os.Signal{syscall.SIGTERM}, want: syscall.SIGTERM},
		"the first of two": {
			hook: "trap '' HUP", signals: []os.Signal{syscall.SIGHUP, syscall.SIGTERM}, want: syscall.SIGHUP,
		},
		"USR1 asks for none": {
			hook: "trap 'exit 3' USR1", signals: []os.Signal{syscall.SIGUSR1}, err: "exit status 3",
		},
		"WINCH asks for none": {hook: "trap 'exit 0' WINCH", signals: []os.Signal{syscall.SIGWINCH}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newHookRig(t)
			r.whenReady(func() {
				for _, sig := range tt.signals {
					r.signals <- sig
				}
			})
			sig, err := r.run(tt.hook + untilStopped)
			if sig != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %v, %v; want %v, %q", sig, err, tt.want, tt.err)
			}
		})
	}
}

// A hook ends with its context, and its whole group with it, also where it does not heed TERM.
func TestHookEndsInTime(t *testing.T) {
	late := errors.New("timed out after 30s")
	for _, command := range []string{":", "trap : TERM; sh -c 'trap \"\" TERM; sleep 0.2' & :", "trap '' TERM", "trap 'exit 0' TERM"} {
		r := newHookRig(t)
		r.task.Policy.KillAfter = 50 * time.Millisecond
		ctx, cancel := context.WithCancelCause(t.Context())
		r.whenReady(func() { cancel(late) })
		sig, err := r.hooks.Run(ctx, &r.task, command+untilStopped, r.signals)
		if sig != nil || err == nil || err.Error() != late.Error() {
			t.Errorf("%q: got %v, %v; want %v", command, sig, err, late)
		}
	}
}

// Run does not wait for processes that a hook leaves running.
func TestHookLeavesADaemon(t *testing.T) {
	r := newHookRig(t)
	read, write := pipe(t)
	r.hooks.Stderr = write
	if sig, err := r.run("sh -c 'while :; do sleep 0.02; echo there || exit; done' & exit 0"); sig != nil ||
		err != nil {
		t.Errorf("%v, %v", sig, err)
	}
	expectText(t, read, "there\n")
	testkit.Must(t, read.Close())
}
