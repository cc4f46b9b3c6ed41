// Package cmdexec executes the attempts of a command: it starts the process so that it can hardly tell retry is there, passes
// signals on, and on a timeout stops the whole process group.
package cmdexec

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Executor runs the command of one task.
type Executor struct {
	Stdin       Stdin
	Output      Output
	Env         []string      // the environment of retry itself
	Dir         string        // where the command runs; empty for the directory of retry itself
	OnTerminal  func() bool   // whether our group now gets what is typed at a terminal; nil: it does not
	Insistence  time.Duration // a second signal that asks to stop kills once the first is this old
	SharedGroup bool          // the child stays in retry's process group, as on a terminal

	inherited []string                    // of Env, by all attempts
	found     struct{ name, path string } // where the command was, if that is an absolute path
}

// Execute runs one attempt to its end. When ctx ends first, the group gets TERM, and KILL after the policy's kill-after.
func (e *Executor) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	begun := time.Now()
	o := e.execute(ctx, t, c)
	o.Duration = time.Since(begun)
	return o
}

func (e *Executor) execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	in, err := e.Stdin.open()
	if err != nil {
		return startFailure("stdin", err)
	}
	out, err := e.Output.open(t)
	if err != nil {
		_ = in.end()
		return startFailure("stdout", err)
	}
	p, err := e.start(t, c.Number, files{in.file, out.stdout, out.stderr})
	if err != nil {
		out.abandon()
		_ = in.end()
		return startFailure(t.Command[0], err)
	}
	in.fed()
	out.begin()
	o := p.supervise(ctx, &supervisor{process: p, killAfter: t.Policy.KillAfter, insistence: e.Insistence}, c)
	out.end(c.Signals, &o)
	if cut := (*stdinError)(nil); errors.As(in.end(), &cut) {
		lost := cut.outcome()
		lost.Stop = o.Stop
		return lost
	}
	o.Final = o.Final || (diedOfPipe(o) && readerGone(e.Output.Stdout))
	return o
}

// supervise carries the started process to its end.
func (p *process) supervise(ctx context.Context, s *supervisor, c runner.Call) task.Outcome {
	restore := p.saveTerminal()
	stop := p.introduce(c.Started)
	s.run(ctx, c.Signals)
	stop()
	o := p.reap()
	if o.Signal != "" {
		restore()
	}
	s.hearTerminal(o, c.Signals)
	o.Stop = s.stop
	if s.timedOut {
		o.Error, o.Message = task.ErrorTimeout, context.Cause(ctx).Error()
	}
	return o
}

// introduction is how long an attempt runs before its processes are made known. Most are over by then; those that are not can be
// found meanwhile by what they have in their environment, where the system shows that.
const introduction = 10 * time.Millisecond

// introduce tells started where the process is found. The function that it returns ends that, and must be called before reap.
func (p *process) introduce(started func(string)) (stop func()) {
	if started == nil {
		return nothing
	}
	told := make(chan struct{})
	timer := time.AfterFunc(introduction, func() {
		defer close(told)
		if token := p.token(); token != "" {
			started(token)
		}
	})
	return func() {
		if !timer.Stop() {
			<-told
		}
	}
}

// Release implements runner.Executor.
func (e *Executor) Release(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	return e.Output.Release(t, signals)
}

// Holds implements runner.Holder.
func (e *Executor) Holds(t *task.Task) bool {
	return e.Output.Holds(t)
}

// files are the standard streams of a process.
type files struct{ stdin, stdout, stderr *os.File }

// start starts the command; a file that the system cannot execute by itself is handed to the shell, as execvp does.
func (e *Executor) start(t *task.Task, number int, f files) (*process, error) {
	if err := checkDir(e.Dir); err != nil {
		return nil, err
	}
	path, err := e.find(t.Command[0])
	if err != nil {
		return nil, err
	}
	env := e.environ(t, number)
	p, err := e.launch(path, t.Command, env, f, t.ID)
	if needsShell(err) {
		return e.launch(shell, append([]string{shell, path}, t.Command[1:]...), env, f, t.ID)
	}
	return p, err
}
