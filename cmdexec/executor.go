// Package cmdexec executes the attempts of a command: it starts the process so that it can hardly tell retry is there, passes
// signals on, and on a timeout stops the whole process group.
package cmdexec

import (
	"context"
	"os"
	"time"

	"github.com/10f93571/retry/runner"
)

// Executor runs a task's command. The streams are files, handed to the child as they are.
type Executor struct {
	Stdin, Stdout, Stderr *os.File
	Env                   []string      // the environment of retry itself
	Dir                   string        // where the command runs; empty for the directory of retry itself
	OnTerminal            func() bool   // whether our group now gets what is typed at a terminal; nil: it does not
	Insistence            time.Duration // a second signal that asks to stop kills once the first is this old
	SharedGroup           bool          // the child stays in retry's process group, as on a terminal
}

// Execute runs one attempt to its end. When ctx ends first, the group gets TERM, and KILL after the policy's kill-after.
func (e *Executor) Execute(ctx context.Context, t *runner.Task, number int, signals <-chan os.Signal) runner.Outcome {
	begun := time.Now()
	p, err := e.start(t, number)
	if err != nil {
		o := startFailure(t.Command[0], err)
		o.Duration = time.Since(begun)
		return o
	}
	s := supervisor{process: p, killAfter: t.Policy.KillAfter, insistence: e.Insistence}
	s.run(ctx, signals)
	end := p.reap()
	o := outcomeOf(end)
	o.Duration = time.Since(begun)
	s.hearTerminal(end, signals)
	o.Stop = s.stop
	if s.timedOut {
		o.Error, o.Message = runner.ErrorTimeout, context.Cause(ctx).Error()
	}
	return o
}

// start starts the command; a file that the system cannot execute by itself is handed to the shell, as execvp does.
func (e *Executor) start(t *runner.Task, number int) (*process, error) {
	if err := checkDir(e.Dir); err != nil {
		return nil, err
	}
	path, err := lookPath(t.Command[0], e.Dir)
	if err != nil {
		return nil, err
	}
	env := childEnv(e.Env, t, number)
	if e.Dir != "" {
		env = append(env, "PWD="+e.Dir)
	}
	p, err := e.launch(path, t.Command, env)
	if needsShell(err) {
		return e.launch(shell, append([]string{shell, path}, t.Command[1:]...), env)
	}
	return p, err
}
