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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// patience bounds how long a test waits for an event. A sound run needs a fraction of it.
const patience = 30 * time.Second

// pipeCapacity is what a pipe holds, and the size of the reads of retry.
const pipeCapacity = 64 << 10

// rig runs one attempt of a command and reads what the command writes.
type rig struct {
	*testing.T
	executor Executor
	task     task.Task
	number   int
	signals  chan os.Signal
	starting func(string)
	started  func(process string) bool
	stdin    *os.File // the other end of the command's stdin, which stays open as long as the test runs
	stdout   *bufio.Reader
	reader   *os.File // what stdout reads
	cancel   context.CancelCauseFunc
	ended    chan struct{} // closed when Execute and Flush have returned
	outcome  task.Outcome
	stopped  os.Signal // what Flush returned
	lost     error
}

var ids atomic.Int64

// newID returns the id of a task: what still looks for processes of an earlier one must not find those of this.
func newID() string { return fmt.Sprintf("task%d", ids.Add(1)) }

// newRig prepares an attempt. After a timeout its KILL comes so late that no test waits for it by accident.
func newRig(t *testing.T, argv ...string) *rig {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	testkit.Must(t, err)
	stdin, toStdin, err := os.Pipe()
	testkit.Must(t, err)
	fromStdout, stdout, err := os.Pipe()
	testkit.Must(t, err)
	testkit.Must(t, fromStdout.SetReadDeadline(time.Now().Add(patience)))
	for _, f := range []*os.File{null, stdin, toStdin, fromStdout, stdout} {
		t.Cleanup(func() { _ = f.Close() })
	}
	inherited := &stdio.InheritedStdin{File: stdin}
	t.Cleanup(inherited.Release)
	return &rig{
		T: t,
		executor: Executor{
			Stdin: inherited, Output: stdio.Output{Stdout: stdout, Stderr: null},
			Env:        os.Environ(),
			OnTerminal: func() bool { return true },
		},
		task: task.Task{
			ID: newID(), IdempotencyKey: "key", Command: argv, Policy: task.Policy{Attempts: 5, KillAfter: time.Hour},
		},
		number:  1,
		signals: make(chan os.Signal),
		stdin:   toStdin,
		stdout:  bufio.NewReader(fromStdout),
		reader:  fromStdout,
		ended:   make(chan struct{}),
	}
}

// withStdin sets the stdin of the attempt, which several rigs can share.
func (r *rig) withStdin(stdin stdio.Stdin) *rig {
	r.executor.Stdin = stdin
	return r
}

// script is a rig whose command is a shell script.
func script(t *testing.T, code string, args ...string) *rig {
	t.Helper()
	return newRig(t, append([]string{"sh", "-c", code, "sh"}, args...)...)
}

// untilStopped is the end of a script that waits for a signal, for a minute at most. The shell runs its traps after
// each sleep. In read or wait it could begin to wait just after the signal.
const untilStopped = `; echo ready; i=0; while [ $((i += 1)) -lt 3000 ]; do sleep 0.02; done; exit 99`

// start begins the attempt. Its stdout ends when Execute has returned and no other process has it open.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		r.outcome = r.executor.Execute(ctx, &r.task,
			runner.Call{Number: r.number, Signals: r.signals, Starting: r.starting, Started: r.started})
		r.stopped, r.lost = r.executor.Flush(&r.task, r.signals)
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

// send passes signals to the attempt. The channel has no buffer, so when send returns, all signals but the last are
// handled.
func (r *rig) send(signals ...os.Signal) {
	r.Helper()
	for _, sig := range signals {
		select {
		case r.signals <- sig:
		case <-r.ended:
			r.Fatalf("send %v: the attempt has ended with %+v", sig, r.outcome)
		case <-time.After(patience):
			r.Fatalf("send %v: nobody receives it", sig)
		}
	}
}

// line returns the next line that the command writes.
func (r *rig) line() string {
	r.Helper()
	text, err := r.stdout.ReadString('\n')
	if err != nil {
		r.Fatalf("read a line of the command: got %q, %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// pid reads a line that is the number of a process.
func (r *rig) pid() int {
	r.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(r.line()))
	testkit.Must(r, err)
	return pid
}

// expect reads these lines.
func (r *rig) expect(lines ...string) {
	r.Helper()
	for _, want := range lines {
		if got := r.line(); got != want {
			r.Fatalf("the command: got %q, want %q", got, want)
		}
	}
}

// expectAny reads these lines in any order: a shell that runs several traps at once runs them by the numbers of their
// signals.
func (r *rig) expectAny(lines ...string) {
	r.Helper()
	got := make([]string, len(lines))
	for i := range got {
		got[i] = r.line()
	}
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		r.Fatalf("the command: got %q, want %q", got, lines)
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

// endAndReap ends a command that reads stdin, and returns when it is reaped: then the supervisor has seen its end.
func (r *rig) endAndReap() {
	r.Helper()
	child := r.pid()
	testkit.Must(r, r.stdin.Close())
	for end := time.Now().Add(patience); syscall.Kill(child, 0) == nil; runtime.Gosched() {
		if time.Now().After(end) {
			r.Fatalf("process %d is not reaped", child)
		}
	}
}

// rest waits until Execute has returned and no process has stdout open, and returns what was not read yet.
func (r *rig) rest() string {
	r.Helper()
	text, err := io.ReadAll(r.stdout)
	r.end()
	testkit.Must(r, err)
	return string(text)
}

// run runs an attempt from start to end.
func (r *rig) run() (string, task.Outcome) {
	r.Helper()
	text := r.start().rest()
	return text, r.outcome
}

// check compares the outcome. Of the duration it checks only that there is one.
func (r *rig) check(want task.Outcome) {
	r.Helper()
	got := r.end()
	if got.Duration <= 0 {
		r.Errorf("duration: got %v, want more than 0", got.Duration)
	}
	got.Duration, got.StdinRead = 0, false // the scripts speak to the test through their stdin
	got.GroupLeft = got.GroupLeft && want.GroupLeft
	if got != want {
		r.Errorf("got  %+v\nwant %+v", got, want)
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

// receive waits for a value, or for a channel to be closed.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing is received")
		panic("unreachable")
	}
}
