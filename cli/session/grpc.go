package session

import (
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// newCallRunner puts together what makes a task's call.
func (p *Host) newCallRunner(t *task.Task, journal *Journal, lines render.Observer, o ExecOptions,
	resumed bool) (*taskRunner, error) {
	find := lookUpIn(environment(p.Environ, t))
	if resumed { // a variable that is not set here may be elsewhere
		if err := grpcexec.Of(t).Check(find); err != nil {
			return nil, err
		}
	}
	executor := &grpcexec.Executor{Lookup: find, UserAgent: userAgent(), Stdout: p.Stdout}
	commands := p.commands(t, o)
	commands.Stdin = stdio.NullStdin{}
	return p.assemble(t, executor, commands, journal, lines, executor.Close), nil
}

// requestOf returns the request that a task sends, or one with the metadata of its call: what of it is secret.
func requestOf(t *task.Task) *request.Request {
	if call := grpcexec.Of(t); call != nil {
		return call.AsRequest()
	}
	return request.Of(t)
}
