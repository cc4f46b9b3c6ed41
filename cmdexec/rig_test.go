//go:build unix

package cmdexec

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// patience bounds how long a test waits for an event; a sound run needs a fraction of it.
const patience = 30 * time.Second

// pipeCapacity is what a pipe holds, and what retry reads of it at a time.
const pipeCapacity = 64 << 10

// rig runs one attempt of a command and listens to what the command writes.
type rig struct {
	*testing.T
	executor Executor
	task     task.Task
	number   int
	signals  chan os.Signal
	started  func(process string)
	stdin    *os.File // the other end of the command's stdin, which stays open as long as the test runs
	stdout   *bufio.Reader
	reader   *os.File // what stdout reads
	cancel   context.CancelCauseFunc
	ended    chan struct{} // closed when Execute has returned, and its output is released
	outcome  task.Outcome
	stopped  os.Signal // what Release returned
	lost     error
}

// newRig prepares an attempt. Its KILL after a timeout comes so late that a test that meets one has failed.
func newRig(t *testing.T, argv ...string) *rig {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	ok(t, err)
	stdin, toStdin, err := os.Pipe()
	ok(t, err)
	fromStdout, stdout, err := os.Pipe()
	ok(t, err)
	ok(t, fromStdout.SetReadDeadline(time.Now().Add(patience)))
	for _, f := range []*os.File{null, stdin, toStdin, fromStdout, stdout} {
		t.Cleanup(func() { _ = f.Close() })
	}
	return &rig{
		T: t,
		executor: Executor{
			Stdin: &stdio.InheritedStdin{File: stdin}, Output: stdio.Output{Stdout: stdout, Stderr: null}, Env: os.Environ(),
			OnTerminal: func() bool { return true },
		},
		task:    task.Task{ID: "task", IdempotencyKey: "key", Command: argv, Policy: task.Policy{Attempts: 5, KillAfter: time.Hour}},
		number:  1,
		signals: make(chan os.Signal),
		stdin:   toStdin,
		stdout:  bufio.NewReader(fromStdout),
		reader:  fromStdout,
		ended:   make(chan struct{}),
	}
}

// with gives the attempt a stdin, which it can share with others.
func (r *rig) withStdin(stdin stdio.Stdin) *rig {
	r.executor.Stdin = stdin
	return r
}

// script is a rig whose command is a shell script.
func script(t *testing.T, code string, args ...string) *rig {
	t.Helper()
	return newRig(t, append([]string{"sh", "-c", code, "sh"}, args...)...)
}

// untilStopped is the end of a script that somebody else has to end within a minute. The shell runs its traps when a sleep ends:
// in read or wait it could fall asleep just after a signal.
const untilStopped = `; echo ready; i=0; while [ $((i += 1)) -lt 3000 ]; do sleep 0.02; done; exit 99`

// start begins the attempt. Its stdout ends when Execute has returned and nobody else holds it.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		r.outcome = r.executor.Execute(ctx, &r.task, runner.Call{Number: r.number, Signals: r.signals, Started: r.started})
		r.stopped, r.lost = r.executor.Release(&r.task, r.signals)
		_ = r.executor.Output.Stdout.Close()
	}()
	r.Cleanup(r.stop)
	return r
}

// stop ends an attempt that a failed test has left running.
func (r *rig) stop() {
	r.cancel(errors.New("the test is over"))
	for range 2 { // the second one kills
		select {
		case r.signals <- syscall.SIGTERM:
		case <-r.ended:
			return
		case <-time.After(patience):
		}
	}
}

// timeout ends the attempt's context, as its deadline would.
func (r *rig) timeout() { r.cancel(runner.ErrTimeout) }

// send passes a signal to the attempt. When it returns, every signal before has been dealt with: the channel has no buffer.
func (r *rig) send(signals ...os.Signal) {
	r.Helper()
	for _, sig := range signals {
		select {
		case r.signals <- sig:
		case <-r.ended:
			r.Fatalf("%v came too late: the attempt ended with %+v", sig, r.outcome)
		case <-time.After(patience):
			r.Fatalf("nobody took %v", sig)
		}
	}
}

// line returns the next line that the command writes.
func (r *rig) line() string {
	r.Helper()
	text, err := r.stdout.ReadString('\n')
	if err != nil {
		r.Fatalf("reading a line of the command: %q, %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// pid reads a line that is the number of a process.
func (r *rig) pid() int {
	r.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(r.line()))
	ok(r, err)
	return pid
}

// expect reads lines that have to be these.
func (r *rig) expect(lines ...string) {
	r.Helper()
	for _, want := range lines {
		if got := r.line(); got != want {
			r.Fatalf("the command wrote %q, want %q", got, want)
		}
	}
}

// expectAny reads lines that come in any order: a shell that is at its traps already, for its child's end perhaps, goes through those
// that follow by their numbers, and may be past the first.
func (r *rig) expectAny(lines ...string) {
	r.Helper()
	got := make([]string, len(lines))
	for i := range got {
		got[i] = r.line()
	}
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		r.Fatalf("the command wrote %q, want %q", got, lines)
	}
}

// end waits until Execute returns.
func (r *rig) end() task.Outcome {
	r.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.Fatal("Execute does not return")
	}
	return r.outcome
}

// endAndReap has a command that reads end, and returns when it is reaped: the supervisor has seen the end then.
func (r *rig) endAndReap() {
	r.Helper()
	child := r.pid()
	ok(r, r.stdin.Close())
	for end := time.Now().Add(patience); syscall.Kill(child, 0) == nil; runtime.Gosched() {
		if time.Now().After(end) {
			r.Fatalf("process %d is not reaped", child)
		}
	}
}

// rest waits until Execute has returned and every process that holds stdout is gone, and returns what was not read yet.
func (r *rig) rest() string {
	r.Helper()
	text, err := io.ReadAll(r.stdout)
	r.end()
	ok(r, err)
	return string(text)
}

// run is an attempt from start to end.
func (r *rig) run() (string, task.Outcome) {
	r.Helper()
	text := r.start().rest()
	return text, r.outcome
}

// check compares all of the outcome but its duration, which only has to be there.
func (r *rig) check(want task.Outcome) {
	r.Helper()
	got := r.end()
	if got.Duration <= 0 {
		r.Errorf("the attempt took %v", got.Duration)
	}
	got.Duration = 0
	if got != want {
		r.Errorf("outcome %+v\n   want %+v", got, want)
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	return !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive waits for a value, or for a channel to be closed.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}
