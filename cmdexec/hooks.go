package cmdexec

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// EnvStatus tells a hook what became of the task.
const EnvStatus = "RETRY_STATUS"

// Hooks runs shell commands beside a task: with the environment of its command and RETRY_STATUS, nothing on stdin, and stdout
// led to stderr, since the other one is the command's alone. It implements runner.Hooks.
type Hooks struct {
	Executor *Executor // of the task's command
	Stderr   *os.File
}

// Run implements runner.Hooks.
func (h Hooks) Run(ctx context.Context, t *task.Task, command string, signals <-chan os.Signal) (os.Signal, error) {
	in, err := NullStdin{}.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.end() }()
	if err := checkDir(h.Executor.Dir); err != nil {
		return nil, err
	}
	path, err := hookShell()
	if err != nil {
		return nil, err
	}
	env := append(h.Executor.environ(t, t.AttemptCount), EnvStatus+"="+string(t.Status))
	p, err := h.Executor.launch(path, []string{"sh", "-c", command}, env, files{in.file, h.Stderr, h.Stderr}, t.ID)
	if err != nil {
		return nil, err
	}
	o := p.supervise(ctx, &supervisor{process: p, killAfter: t.Policy.KillAfter, insistence: h.Executor.Insistence}, runner.Call{Signals: signals})
	return o.Stop, failure(o)
}

// failure says how a hook failed; nil where it did not.
func failure(o task.Outcome) error {
	switch {
	case o.Stop != nil, o.Exit == 0:
		return nil
	case o.Signal != "":
		return errors.New(o.Signal)
	}
	return fmt.Errorf("exit status %d", o.Exit)
}
