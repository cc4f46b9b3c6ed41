package cmdexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Hooks runs shell commands beside a task. They have the environment of its command and RETRY_STATUS, an empty stdin,
// and their stdout goes to stderr, since stdout belongs to the command. It implements runner.Hooks.
type Hooks struct {
	Executor *Executor // of the task's command
	Stderr   *os.File
}

// Run implements runner.Hooks. When ctx ends it stops the hook's process group as a timeout stops that of an attempt.
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
	if t.Status.Finished() { // the alert has its time whatever the budget says, also where it is a retry
		isDeadline := func(setting string) bool { return strings.HasPrefix(setting, EnvDeadline+"=") }
		c.Env = slices.DeleteFunc(c.Env, isDeadline)
		if of := slices.IndexFunc(h.Executor.Env, isDeadline); of >= 0 { // what this run is nested in
			c.Env = append(c.Env, h.Executor.Env[of])
		}
	}
	p, err := c.Start()
	if err != nil {
		return nil, err
	}
	o := h.Executor.supervise(ctx, t, p, runner.Call{Signals: signals})
	switch {
	case o.Error == task.ErrorTimeout && o.Stop == nil:
		return nil, errors.New(o.Message)
	case o.Stop != nil, o.Exit == 0:
		return o.Stop, nil
	case o.Signal != "":
		return nil, errors.New(o.Signal)
	}
	return nil, fmt.Errorf("exit status %d", o.Exit)
}
