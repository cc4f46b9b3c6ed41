// Package cmdexec executes the attempts of a command. It starts the process so that it can hardly tell that retry is
// there, passes signals on, and on a timeout stops the whole process group.
package cmdexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Executor runs the command of one task.
type Executor struct {
	Stdin           stdio.Stdin
	Output          stdio.Output
	Env             []string      // the environment of retry itself
	Dir             string        // where the command runs; empty for retry's own directory
	OnTerminal      func() bool   // whether the terminal now sends its signals to our process group; nil means never
	SharedGroup     bool          // the process stays in retry's process group, as it must on a terminal
	SecondStopKills time.Duration // a second stop signal kills if the first is at least this old
}

// Execute runs one attempt to its end. When ctx ends first, the process group gets TERM, and KILL after the policy's
// kill-after.
func (e *Executor) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	start := time.Now()
	o := e.execute(ctx, t, c)
	o.Duration = time.Since(start)
	return o
}

func (e *Executor) execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	in, err := e.Stdin.Open()
	if err != nil {
		return startFailure("stdin", err)
	}
	out, err := e.Output.Open(t)
	if err != nil {
		_ = in.Close()
		return startFailure("stdout", err)
	}
	p, err := e.start(t, c.Number, in.File, out.Stdout, out.Stderr)
	if err != nil {
		out.Discard()
		_ = in.Close()
		return startFailure(t.Command[0], err)
	}
	in.Started()
	out.Begin()
	o := e.supervise(ctx, t, p, c)
	out.End(c.Signals, &o)
	if incomplete := (*stdio.StdinError)(nil); errors.As(in.Close(), &incomplete) {
		failed := incomplete.Outcome()
		failed.Stop = o.Stop
		return failed
	}
	if o.Signal == "SIGPIPE" || o.Error == task.ErrorNone && o.Exit == task.ExitSignalBase+int(syscall.SIGPIPE) {
		o.Final = o.Final || stdio.ReaderGone(e.Output.Stdout)
	}
	return o
}

// start starts the command. If the system cannot execute the file, it gives it to the shell, as execvp does.
func (e *Executor) start(t *task.Task, number int, stdin, stdout, stderr *os.File) (*proc.Process, error) {
	if err := checkDirectory(e.Dir); err != nil {
		return nil, err
	}
	path, err := lookPath(t.Command[0], e.Dir)
	if err != nil {
		return nil, err
	}
	c := e.command(t, number, stdin, stdout, stderr)
	c.Path, c.Argv = path, t.Command
	p, err := c.Start()
	if errors.Is(err, syscall.ENOEXEC) {
		c.Path, c.Argv = shell, append([]string{shell, path}, t.Command[1:]...)
		return c.Start()
	}
	return p, err
}

// command returns what all processes of a task have in common.
func (e *Executor) command(t *task.Task, number int, stdin, stdout, stderr *os.File) *proc.Command {
	return &proc.Command{
		Env: environment(e.Env, e.Dir, t, number), Dir: e.Dir, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		TaskID: t.ID, SharedGroup: e.SharedGroup, OnTerminal: e.OnTerminal,
	}
}

// Flush implements runner.Executor.
func (e *Executor) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	return e.Output.Flush(t, signals)
}

// HoldsOutput implements runner.OutputHolder.
func (e *Executor) HoldsOutput(t *task.Task) bool {
	return e.Output.HoldsOutput(t)
}

// Hooks runs shell commands beside a task. They have the environment of its command and RETRY_STATUS, an empty stdin,
// and their stdout goes to stderr, since stdout belongs to the command. It implements runner.Hooks.
type Hooks struct {
	Executor *Executor // of the task's command
	Stderr   *os.File
}

// Run implements runner.Hooks.
func (h Hooks) Run(ctx context.Context, t *task.Task, command string, signals <-chan os.Signal) (os.Signal, error) {
	in, err := stdio.NullStdin{}.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	if err := checkDirectory(h.Executor.Dir); err != nil {
		return nil, err
	}
	path := shell
	if runtime.GOOS == "windows" { // where git brings one, for example
		if path, err = exec.LookPath("sh"); err != nil {
			return nil, err
		}
	}
	c := h.Executor.command(t, t.AttemptCount, in.File, h.Stderr, h.Stderr)
	c.Path, c.Argv, c.Env = path, []string{"sh", "-c", command}, append(c.Env, EnvStatus+"="+string(t.Status))
	p, err := c.Start()
	if err != nil {
		return nil, err
	}
	o := h.Executor.supervise(ctx, t, p, runner.Call{Signals: signals})
	switch {
	case o.Stop != nil, o.Exit == 0:
		return o.Stop, nil
	case o.Signal != "":
		return nil, errors.New(o.Signal)
	}
	return nil, fmt.Errorf("exit status %d", o.Exit)
}
