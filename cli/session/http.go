package session

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/internal/version"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// newRequestRunner puts together what sends a task's request.
func (p *Host) newRequestRunner(t *task.Task, journal *Journal, lines render.Observer, o ExecOptions,
	resumed bool) (*taskRunner, error) {
	find := lookUpIn(environment(p.Environ, t))
	if resumed { // a variable that is not set here may be elsewhere
		if err := httpexec.Check(request.Of(t), find); err != nil {
			return nil, err
		}
	}
	body, keep, done, err := journal.body(t, o, p.inputEnded, resumed)
	if err != nil {
		return nil, err
	}
	executor := &httpexec.Executor{
		Keep:      keep,
		Lookup:    find,
		UserAgent: userAgent(),
		Output:    httpexec.Output{Stdout: stdio.Blocking{File: p.Stdout}, Stderr: stdio.Blocking{File: p.Stderr}},
		Temporary: journal.temporary,
		Boot:      proc.Boot,
	}
	if !o.Quiet {
		executor.Progress = lines.Progress()
	}
	if body != nil {
		executor.Stdin = body
	}
	commands := p.commands(t, o)
	commands.Stdin = stdio.NullStdin{}
	return p.assemble(t, executor, commands, journal, lines, func() { executor.Close(t); done() }), nil
}

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

// bodyLost reports whether a request may have been sent with a body that was not kept to its end, under an idempotency
// key that nobody but retry has chosen. To a server that has seen it, the key stands for that body, and no other.
func bodyLost(journal state.Store, t *task.Task) bool {
	r := request.Of(t)
	if r == nil || !r.ReadsStdin() || !r.SendsKey() || r.Keyed || t.EndsByCrash() {
		return false
	}
	kept, err := journal.Input(t)
	if err == nil {
		_ = kept.Close()
	}
	return errors.Is(err, state.ErrInputLost)
}

// filesChanged reports whether a request would send other files than when it was interrupted, and may be sent anew: a
// key that the user has chosen stands for the first ones. One with --once that is not safe to repeat stays until it is
// known what became of it.
func filesChanged(interrupted, t *task.Task) bool {
	a, b := request.Of(interrupted), request.Of(t)
	again := a != nil && !a.Keyed && (a.Safe() || interrupted.Status == task.Pending && !interrupted.Once && !t.Once)
	return again && b != nil && !a.SameFiles(b)
}

// warnOfRequest warns of secrets that the journal would show, and of a retry-on that nobody typed for this request.
func (w *Wrapper) warnOfRequest(t *task.Task, journal *Journal, warn func(error)) {
	warnOfSecrets(httpexec.LiteralSecrets(requestOf(t)), journal, warn)
	if w.RetryOn != nil || w.Policy != nil || len(t.Policy.RetryOn) == 0 || t.Target.Safe() {
		return
	}
	warn(fmt.Errorf("retry-on is from the environment or the default policy, "+
		"and may have %s sent again after it has taken effect"+
		"\nhint: to mean it, type --retry-on or -p NAME; --idempotent says that it is safe", text.Escape(t.Target.Verb())))
}

// warnOfSecrets warns of secrets that the journal stores as they were typed.
func warnOfSecrets(names []string, journal *Journal, warn func(error)) {
	if len(names) > 0 && !journal.absent() {
		warn(fmt.Errorf("the journal keeps %s as typed here"+
			"\nhint: {env:NAME} instead keeps only the name of a variable, which is read at each send",
			text.Escape(strings.Join(names, " and "))))
	}
}

// lookUpIn returns a function that finds variables in an environment.
func lookUpIn(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) { return flags.LookUp(environ, name) }
}

// errBodyRead says that a loop in a shell gives a line the stdin of an earlier one, which has read it.
var errBodyRead = errors.New("an earlier run was cut off whose body was read from this stdin: what is left is a part")

// isPipeOf reports whether a task's body was read from a pipe.
func isPipeOf(t *task.Task, pipe task.Source) bool {
	return t.Target != nil && pipe.Pipe && t.Options.Source == pipe
}

// compareCall reads the body of a call, and returns an error where an interrupted task of its name had another one.
// That of a request stays where it is, since the interrupted one goes on with its own.
func (w *Wrapper) compareCall(journal *Journal, t, interrupted *task.Task,
	read func() (*spool.Spool, error)) error {
	if interrupted == nil || t.Kind != grpcexec.Kind {
		return nil
	}
	_, err := read()
	switch {
	case errors.Is(err, errBodyRead), errors.Is(err, stdio.ErrTaken): // which matters to a new task alone
		return nil
	case err == nil:
		err = w.sameTask(interrupted, t)
	}
	if err != nil {
		_ = journal.Journal.Release(interrupted.Number)
	}
	return err
}

// NoteBody notes, before it is read, where a body comes from that can be read only once. The name is that of a file, or
// request.StdinFile.
func (p *Host) NoteBody(name string, t *task.Task) {
	if !p.isStdin(name) {
		proc.NoteSignals(true)
		return
	}
	t.Options.Source = (&stdio.InheritedStdin{File: p.Stdin}).KeptSource()
	p.NoteWriter(true)
}

// isStdin reports whether a name leads to stdin: the system has some for it.
func (p *Host) isStdin(name string) bool {
	if name == request.StdinFile {
		return true
	}
	named, err := os.Stat(name)
	own, err2 := p.Stdin.Stat()
	return err == nil && err2 == nil && os.SameFile(named, own)
}

// ReadBody reads a body that can be read only once, up to a number of bytes; the task's time begins then. An earlier
// run of its name that was cut off may have had the same stdin, before: a file is read from the same place again, and
// for what is lost the error is errBodyRead.
func (p *Host) ReadBody(name string, most int64, t *task.Task, before *task.Source) (*spool.Spool, error) {
	stdin := &stdio.InheritedStdin{File: p.Stdin, Rest: p.takesRest}
	if t.Options.Source.Pipe { // it is read by whatever name: the note that it is taken stays with p.Stdin
		name = request.StdinFile
	}
	if name != request.StdinFile {
		opened, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("the request's body: %w", err)
		}
		defer func() { _ = opened.Close() }()
		stdin.File = opened
	}
	if before != nil && p.isStdin(name) {
		if stdin.Continue(*before) != nil { // the only error is stdio.ErrRead
			return nil, text.WithHint(errBodyRead, "--fresh sends what is left")
		}
		t.Options.Source = stdin.KeptSource()
	}
	source, err := stdin.Reader()
	if err != nil {
		return nil, err
	}
	body, err := p.readMost(source, most)
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	p.body = source
	t.BeginNow(time.Now())
	return body, nil
}

// BodySource returns the name of what has the part of a body that can be read only once: request.StdinFile, or a pipe
// such as <(COMMAND) of a shell, which is sent as if it were stdin; empty where all of the body can be read again.
func BodySource(r *request.Request) (name string, err error) {
	for {
		err := request.Stamp(r)
		stream, isStream := errors.AsType[*request.StreamError](err)
		switch {
		case err == nil && name == "" && r.ReadsStdin():
			return request.StdinFile, nil
		case !isStream, r.ReadsStdin():
			return name, err
		}
		part := &r.Body[stream.Part]
		name, part.File = part.File, request.StdinFile
	}
}

// body returns what a request reads from stdin, a function that keeps it for a resume, and one to call after the run.
// This process's own body stays open: where its name leads to another task, that is sent with it.
// A body whose writer has ended a moment ago is not marked as whole before the first request, but beside it.
func (g *Journal) body(t *task.Task, o ExecOptions, ended time.Time, resumed bool) (body *spool.Spool,
	keep func(*task.Task) error, done func(), err error) {
	switch {
	case !t.Target.ReadsStdin(), resumed && t.EndsByCrash(): // the recovery ends the task, and nothing is sent
		return nil, nil, func() {}, nil
	case resumed:
		body, err = g.keptInput(t)
		return body, nil, func() { _ = body.Close() }, err
	}
	warn := func(err error) {
		if err != nil {
			g.warn(fmt.Errorf("a resume will not find the request's body: %w", err))
		}
	}
	var completed sync.WaitGroup
	keep = func(t *task.Task) error {
		if g.absent() || t.Number == 0 {
			return nil
		}
		if time.Since(ended) > endsTogether {
			warn(g.keepBody(t, o.Body))
			return nil
		}
		file, err := g.writeBody(t, o.Body)
		if err != nil {
			warn(err)
			return nil
		}
		completed.Go(func() {
			if g.outlivesTheWriter(t, ended) {
				warn(g.Journal.CompleteInput(t, file))
			}
			_ = file.Close()
		})
		return nil
	}
	done = func() {
		if !t.Status.Finished() {
			completed.Wait() // a resume needs it
		}
	}
	return o.Body, keep, done, nil
}

// keepBody writes the body beside the journal, and marks it as whole.
func (g *Journal) keepBody(t *task.Task, body *spool.Spool) error {
	file, err := g.writeBody(t, body)
	if err != nil {
		return err
	}
	return errors.Join(g.Journal.CompleteInput(t, file), file.Close())
}

// writeBody writes the body beside the journal.
func (g *Journal) writeBody(t *task.Task, body *spool.Spool) (*os.File, error) {
	file, err := g.keepInput(t)
	if err != nil {
		return nil, err
	}
	if _, err := body.WriteTo(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func userAgent() string { return "retry/" + version.Get().Version }
