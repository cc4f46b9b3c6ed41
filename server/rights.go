package server

import (
	"encoding/json"
	"net/http"

	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/task"
)

// mayRun reports whether a client may make a task that runs a command. It takes the same to see one and to change it.
func (s *Server) mayRun(r *http.Request) bool {
	g, err := s.grant(r)
	return s.AllowExec && err == nil && g.Exec
}

// runsCommand reports whether a task runs a command: itself, in a hook, or in the task that follows when it is dead.
func runsCommand(t *task.Task) bool {
	o := &t.Options
	return t.Kind == task.KindCommand || o.OnStart+o.OnRetry+o.OnSuccess+o.OnFailure != "" || hasCommand(o.Exhausted)
}

// hasCommand reports whether an onExhausted runs a command.
func hasCommand(onExhausted string) bool {
	var next struct {
		Command json.RawMessage `json:"command"`
	}
	return onExhausted != "" && (json.Unmarshal([]byte(onExhausted), &next) != nil || next.Command != nil)
}

// change returns the task that a path names, or an error where the client may not change it.
func (s *Server) change(r *http.Request) (*task.Task, error) {
	t, err := s.find(r)
	switch {
	case err != nil:
		return nil, err
	case runsCommand(t) && !s.mayRun(r):
		return nil, problem.Forbidden("the task runs a command" +
			"\nhint: the server needs --allow-exec, and the client a token of scope admin; or use the command line")
	case t.Queue == task.QueueNone:
		return nil, problem.Conflict("the task is that of a command line, and is not queued for workers"+
			"\nhint: use the command line: retry cancel, resume or requeue %s", t.ID)
	}
	return t, nil
}

// shown returns a task as the client may see it.
func (s *Server) shown(r *http.Request, t *task.Task, full bool) wire.Task {
	w := wire.EncodeTask(t, full)
	if runsCommand(t) && !s.mayRun(r) {
		w.Command = nil
		if w.Details != nil {
			w.Details.Directory = ""
			w.Details.OnExhausted = nil
			p := &w.Details.Policy
			p.RetryOn, p.StopOn, p.SuccessOn, p.Rules = nil, nil, nil, nil // they quote what the command writes
		}
		if w.LastAttempt != nil {
			hideOutput(t, w.LastAttempt)
		}
	}
	return w
}

// hideOutput removes what a command has written from an attempt, and the message of one that could not start, which
// names the program.
func hideOutput(t *task.Task, a *wire.Attempt) {
	if t.Kind == task.KindCommand {
		a.StdoutTail, a.StderrTail, a.ErrorMessage = nil, nil, nil
	}
}
