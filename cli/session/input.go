package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// CheckInput refuses to give fresh attempts to a command whose stdin is lost, or to a request whose file is another one.
func CheckInput(t *task.Task) error {
	if r := request.Of(t); r != nil {
		if err := httpexec.CheckFiles(r); err != nil {
			return fmt.Errorf("requeue %s: %w", render.ShortID(t.ID), err)
		}
	}
	source := t.Options.Source
	switch { // what was kept is gone
	case t.Target != nil, source == (task.Source{}), source.Terminal, t.Options.Stdin == task.StdinReplay:
		return nil
	}
	file, err := reopened(t, "requeue --run")
	if err != nil {
		return fmt.Errorf("requeue %s: %w", render.ShortID(t.ID), err)
	}
	return file.Close()
}

// CheckCarrier refuses to run here what only a worker carries whole: a request of the API, because the worker judges its
// address, and a task with onExhausted, because the worker makes the task that follows it.
func CheckCarrier(t *task.Task) error {
	why := "a request of the API is sent by a worker"
	switch {
	case t.Options.Exhausted != "":
		why = "its onExhausted is made by a worker"
	case t.Kind == grpcexec.Kind && grpcexec.Of(t).Guarded:
	case request.Of(t) == nil || !request.Of(t).Guarded:
		return nil
	}
	return fmt.Errorf("requeue %s: %s, and not by this command\nhint: without --run, a worker takes it",
		render.ShortID(t.ID), why)
}

// reopened returns the file that a command had as its stdin. The verb is for the hint, which says how to do without.
func reopened(t *task.Task, verb string) (file *os.File, err error) {
	if t.Options.Stdin == task.StdinRest && !t.Options.Source.Pipe {
		err = fmt.Errorf("nobody knows how much of its stdin, %q, has been read", t.Options.Source.Path)
	} else {
		file, err = stdio.Reopen(t.Options.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: retry %s --stdin null %s goes on without it, --stdin rest with this command's own",
			err, verb, render.ShortID(t.ID))
	}
	return file, nil
}

// readInput reads to its end what is kept with a task. What a process may have written has a time at which that end was
// read.
func (p *Host) readInput(source *stdio.Reader) (*spool.Spool, error) {
	return p.readMost(source, math.MaxInt64)
}

// readMost is readInput of so many bytes at most.
func (p *Host) readMost(source *stdio.Reader, most int64) (*spool.Spool, error) {
	begun, err := source.File.Stat()
	if err != nil {
		return nil, err
	}
	terminal := stdio.IsTerminal(source.File)
	proc.NoteSignals(true)
	kept := spool.New(spool.MemoryLimit, func() (*os.File, error) { return spool.Temporary("") })
	if _, err := io.Copy(kept, io.LimitReader(source, most)); err != nil {
		return nil, err
	}
	if err := source.CheckEnd(begun, terminal); err != nil {
		_ = kept.Close()
		return nil, err
	}
	if begun.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 || terminal {
		p.inputEnded = time.Now()
	}
	return kept, nil
}

// ReadFile returns what a file has that can be read again, up to a number of bytes.
func (p *Host) ReadFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	kept, err := p.readMost(stdio.NewReader(file), most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = kept.Close() }()
	return io.ReadAll(io.NewSectionReader(kept, 0, kept.Size()))
}

// signalled reports, EndGrace after the end of stdin was read, whether a signal may have ended its writer that this
// process outlives. A command may take its time to read what the writer has left.
func (p *Host) signalled(ended time.Time) bool {
	late := max(lateNote, min(time.Since(ended), slowestEnd))
	if p.writerGone != nil {
		if gone := p.writerGone(); !gone.IsZero() {
			ended = gone
		}
	}
	return proc.Signalled(ended.Add(-slowestEnd), ended.Add(late))
}

// lateNote is how long after a writer's end a signal may be noted that has ended it: with a small share of the
// processors a thread stands still for a while.
const lateNote = 300 * time.Millisecond

// slowestEnd is how long after a signal the end of a writer is held against it: a script may clean up before it ends.
const slowestEnd = 10 * time.Second

// awaitWriter returns a moment after the end of what a process wrote. What has ended that may be about to stop this
// one, too, before it takes half of an input for all of it. No signal before that is for a command.
func (p *Host) awaitWriter(journal *Journal) error {
	if p.inputEnded.IsZero() {
		return nil
	}
	time.Sleep(time.Until(p.inputEnded.Add(stdio.EndGrace)))
	proc.AwaitSignals()
	if proc.Signalled(time.Time{}, time.Now()) {
		return errors.New("a signal came as the writer of the input ended, which may have ended that, too" +
			"\nhint: run the whole pipeline again")
	}
	if journal.endsWithOuter(context.Background(), &task.Task{Parent: p.Getenv(cmdexec.EnvTaskID)}) {
		return errors.New("what it runs in was cancelled, which may have ended the writer of the input, too")
	}
	return nil
}

// endsTogether is how long after the end of a kept input this process may be ended by what has ended its writer.
const endsTogether = 100 * time.Millisecond

// awaitSignalled is signalled when all signals are in. The cancel of an outer task ends a writer, too; with timeout(1)
// between them, this process has no signal of it.
func (g *Journal) awaitSignalled(t *task.Task, ended time.Time) bool {
	proc.AwaitSignals()
	return g.signalled != nil && g.signalled(ended) || g.endsWithOuter(context.Background(), t)
}

// outlivesTheWriter waits, and reports whether this process goes on after the end of a kept input. A terminal that is
// closed, a machine that shuts down or one without memory ends all of a pipeline, by signals a moment apart, so that
// the end may be that of a writer which was killed. A resume must not take the part for the whole.
func (g *Journal) outlivesTheWriter(t *task.Task, ended time.Time) bool {
	var stopping <-chan struct{} // nil, it is never closed
	if g.Stopping != nil {
		stopping = g.Stopping.Done()
	}
	select {
	case <-stopping:
		return false
	case <-time.After(time.Until(ended.Add(endsTogether))):
	}
	if g.awaitSignalled(t, ended) {
		return false
	}
	select {
	case <-stopping:
		return false
	default:
		return true
	}
}

// input reads what a task that is queued needs of stdin; nil for none. A file is opened again by the worker. A pipe is
// read with --stdin replay alone: it may have no end. Where nothing has come yet, nobody knows whether something will.
// An earlier run of its name that was cut off may have had the same stdin, before.
func (w *Wrapper) input(p *Host, journal *Journal, t *task.Task, before *task.Source) (*spool.Spool, error) {
	switch {
	case t.Target != nil:
		err := w.work.Read(p, t, before)
		return w.work.ExecOptions().Body, err
	case t.Options.Stdin == task.StdinRest:
		return nil, errors.New("--stdin rest makes no sense for a queued task: a worker runs it" +
			"\nhint: --stdin replay keeps what is read now")
	case t.Options.Stdin == task.StdinNull:
		return nil, nil
	}
	stdin := &stdio.InheritedStdin{File: p.Stdin, Rest: p.takesRest}
	source, replay := stdin.Source(), t.Options.Stdin == task.StdinReplay
	switch {
	case replay:
	case source.Pipe && stdio.HasBytes(p.Stdin):
		return nil, errors.New("stdin is a pipe with something in it, which the worker cannot read" +
			"\nhint: --stdin replay keeps it with the task; --stdin null leaves it out")
	case source.Pipe:
		open := errors.New("stdin is an open pipe: the task gets nothing of what may come through it" +
			"\nhint: --stdin replay waits for its end and keeps it; --stdin null leaves it out")
		journal.warn(runner.Loss{Err: open, New: true})
		fallthrough
	case source.Terminal:
		t.Options.Stdin = task.StdinNull
		return nil, nil
	}
	if err := journal.continues(t, stdin, ExecOptions{before: before}); err != nil {
		return nil, err
	}
	if replay {
		source, err := stdin.Reader() // a loop may read the same file
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		kept, err := p.readInput(source)
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		t.BeginNow(time.Now())
		return kept, nil
	}
	if info, err := p.Stdin.Stat(); err == nil && source.Path != "" && files.IsRemoved(info) {
		return nil, errors.New("stdin is a file that was removed, as a here-document is, and which the worker cannot open" +
			"\nhint: --stdin replay keeps it with the task; --stdin null leaves it out")
	}
	if t.Options.Source != (task.Source{}) {
		file, err := stdio.Reopen(t.Options.Source)
		if err != nil {
			return nil, fmt.Errorf("%w\nhint: --stdin replay keeps it with the task; --stdin null leaves it out", err)
		}
		_ = file.Close()
	}
	return nil, nil
}

// argumentPipes is the stdin of a command whose arguments may name pipes, as those of the shell's <(command) do. What
// one attempt reads from such a pipe, the next one cannot: it warns before the second.
type argumentPipes struct {
	stdio.Stdin
	command []string
	warn    func(error)
	opened  int // times, also by an earlier process that may have had the same pipe
}

// Open implements stdio.Stdin.
func (a *argumentPipes) Open() (*stdio.Input, error) {
	if a.opened++; a.opened == 2 {
		if path := namedPipe(a.command); path != "" {
			a.warn(runner.Loss{New: true, Err: fmt.Errorf("what an earlier attempt has read from %s cannot be read again"+
				hintForPipe, text.Escape(path))})
		}
	}
	return a.Stdin.Open()
}

const hintForPipe = "\nhint: give the command a file instead of a pipe; or use stdin, and --stdin replay"

// namedPipe returns a pipe that an argument names, alone or after = or @; "" for none.
func namedPipe(command []string) string {
	opened := regexp.MustCompile(`/(dev|proc/(self|\d+))/fd/\d+`) // that of <(command), also as a part of an argument
	for _, argument := range command {
		paths := opened.FindAllString(argument, -1)
		if len(paths) == 0 {
			_, value, _ := strings.Cut(argument, "=")
			paths = []string{argument, value, strings.TrimPrefix(argument, "@"), strings.TrimPrefix(value, "@")}
		}
		for _, path := range paths {
			if fd, err := strconv.Atoi(filepath.Base(path)); err == nil && stdio.IsForWriting(fd) {
				continue // that of >(command)
			}
			if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
				return path
			}
		}
	}
	return ""
}
