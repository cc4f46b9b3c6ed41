package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// source returns what the request's body is read from once and kept: stdin, or another pipe in its place, such as <(COMMAND) of a shell.
// It is nil where all of the body can be read again.
func (p *Process) source(r *task.Request) (*os.File, error) {
	var source *os.File
	for {
		err := httpexec.Stamp(r)
		stream := (*httpexec.StreamError)(nil)
		switch {
		case err == nil && source == nil && r.ReadsStdin():
			return p.Stdin, nil
		case !errors.As(err, &stream), r.ReadsStdin():
			return source, err
		}
		part := &r.Body[stream.Part]
		if source, err = os.Open(part.File); err != nil {
			return nil, fmt.Errorf("the request's body: %w", err)
		}
		part.File = task.StdinFile
	}
}

// readBody reads it to its end. A signal ends retry itself meanwhile: nothing was made yet.
func readBody(source *os.File) (*spool.Spool, error) {
	body := spool.New(spool.MemoryLimit, func() (*os.File, error) { return spool.Temporary("") })
	if _, err := io.Copy(body, source); err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	return body, nil
}

// body returns what a task's request reads from stdin, what keeps that for a resume, and what has to be done when the run is over.
func (g *guardedJournal) body(t *task.Task, m means, resumed bool) (body *spool.Spool, keep func(*task.Task) error, done func(), err error) {
	switch {
	case !t.Request.ReadsStdin():
		return nil, nil, func() {}, nil
	case resumed:
		file, err := g.journal.Input(t)
		if err != nil {
			return nil, nil, nil, err
		}
		if body, err = spool.Of(file); err != nil {
			return nil, nil, nil, err
		}
		return body, nil, func() { _ = body.Close() }, nil
	}
	keep = func(t *task.Task) error {
		if g.absent() || t.Number == 0 {
			return nil
		}
		if err := g.keepBody(t, m.body); err != nil {
			g.warn(fmt.Errorf("a resume will not find the request's body: %w", err))
		}
		return nil
	}
	return m.body, keep, func() { _ = m.body.Close() }, nil
}

// keepBody writes the body beside the journal.
func (g *guardedJournal) keepBody(t *task.Task, body *spool.Spool) error {
	file, err := g.keepInput(t)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.NewSectionReader(body, 0, body.Size()))
	if err == nil {
		err = g.journal.CompleteInput(t, file)
	}
	return errors.Join(err, file.Close())
}
