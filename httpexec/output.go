package httpexec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/task"
)

// Output is where replies are written without -o: whole or not at all.
type Output struct {
	Stdout io.Writer
	Stderr io.Writer // for the body of an error if there is -o
}

// HoldsOutput implements runner.Executor. Whether there is a body is known only when Flush is called. A worker shows
// none.
func (e *Executor) HoldsOutput(*task.Task) bool { return e.Delivery == nil }

// Flush implements runner.Executor. It writes the body of the task's last attempt if it was received whole.
func (e *Executor) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	if e.Delivery != nil {
		return nil, nil
	}
	r := e.lastReply
	e.lastReply = nil
	if !t.Status.Finished() {
		e.keepForNextAttempt(r)
		return nil, nil
	}
	p := e.partFile
	e.partFile = nil
	last := e.last
	e.last = nil
	shown := r != nil && e.shows(t, r)
	if !shown {
		r.drop()
		p.Drop()
		e.dropUnfinished()
	}
	if !shown && last == nil {
		return nil, nil
	}
	copied, status := make(chan error, 1), t.Status // which changes where a signal stops the copy
	go func() {
		var err error
		if shown {
			defer r.drop()
			err = e.passOn(request.Of(t).Output, status, r, p, t.Name != "")
		}
		if written := last.writeOut(e.Output); err == nil { // of two errors, the one about the reply counts
			err = written
		}
		copied <- err
	}()
	for {
		select {
		case err := <-copied:
			return nil, err
		case sig := <-signals:
			if task.Stops(sig) {
				return sig, task.ErrStopped
			}
		}
	}
}

// Close frees what was kept for another attempt. Call it when the run is over, however it ended. A resume of the task
// can go on from its part file.
func (e *Executor) Close(t *task.Task) {
	if e.Delivery == nil {
		e.free(t)
	}
}

func (e *Executor) free(t *task.Task) {
	resumable := !t.Status.Finished() && t.Number != 0
	if resumable && e.partFile != nil && e.unfinished != nil && e.unfinished.body == e.partFile.Body {
		_ = e.partFile.Body.Close()
		e.partFile = nil
	}
	e.lastReply.drop()
	e.dropUnfinished()
	e.partFile.Drop()
	for _, made := range e.prepared {
		_ = made.Close()
	}
	e.lastReply, e.partFile, e.prepared = nil, nil, nil
}

// keepForNextAttempt keeps a reply only if the next attempt can continue it. An empty part file does not stay in the
// directory while retry waits.
func (e *Executor) keepForNextAttempt(r *reply) {
	if e.unfinished == nil || r == nil || e.unfinished.body != r.body {
		r.drop()
	}
	if e.partFile != nil && (e.unfinished == nil || e.unfinished.body != e.partFile.Body) {
		e.partFile.Drop()
		e.partFile = nil
	}
}

// shows reports whether a part of a reply is shown. With -f the header of an error is shown under -i, as with curl. What
// --success-on takes for a success is no error.
func (e *Executor) shows(t *task.Task, r *reply) bool {
	if request.Of(t).HideFail && r.status >= 400 && t.Status != task.Succeeded {
		r.drop()
		r.body = nil
		return r.whole && len(r.head) > 0
	}
	return r.whole
}

// passOn writes a whole reply to stdout, stderr or the file of -o; that is synced where others rely on it.
func (e *Executor) passOn(path string, status task.Status, r *reply, p *download.PartFile, synced bool) error {
	switch {
	case path == "":
		return r.writeTo(e.Output.Stdout)
	case r.status == http.StatusNotModified && len(r.head) == 0: // the file is still what the server has
		p.Drop()
		return nil
	case status != task.Succeeded && path == os.DevNull: // nobody is to see it
		return nil
	case status != task.Succeeded:
		defer p.Drop()
		return r.writeErrorTo(e.Output.Stderr)
	case p == nil:
		return outputError(path, e.writeThrough(path, r, synced))
	case r.body == p.Body:
		return outputError(path, p.Install(synced))
	}
	err := p.Begin("") // a resume must not take it for a part of the download
	if err == nil {
		err = r.writeTo(p.Body)
	}
	if err != nil {
		p.Drop()
		return outputError(path, err)
	}
	return outputError(path, p.Install(synced))
}

// writeErrorTo writes the body of an error to stderr, and ends its last line.
func (r *reply) writeErrorTo(w io.Writer) error {
	err := r.writeTo(w)
	if end := r.tail(1); err == nil && end != "" && end != "\n" {
		_, err = io.WriteString(w, "\n")
	}
	return err
}

// writeThrough writes to a file that is not replaced, as one that a link leads to.
func (e *Executor) writeThrough(path string, r *reply, synced bool) error {
	d, err := download.DestinationOf(path)
	switch {
	case err != nil:
		return err
	case d.Descriptor == 1: // not opened again: a file has its position, and a socket cannot be opened
		return r.writeTo(e.Output.Stdout)
	case d.Descriptor == 2:
		return r.writeTo(e.Output.Stderr)
	}
	file, err := d.Open()
	if err != nil {
		return err
	}
	err = r.writeTo(file)
	if info, failed := file.Stat(); synced && err == nil && failed == nil && info.Mode().IsRegular() {
		err = file.Sync()
		if to, failed := filepath.EvalSymlinks(path); failed == nil {
			_ = files.SyncDir(filepath.Dir(to))
		}
	}
	return errors.Join(err, file.Close())
}

// CheckOutput returns an error if it is known before the request that its reply cannot be written to a file.
func CheckOutput(path string) error {
	_, err := download.DestinationOf(path)
	return outputError(path, err)
}

// CheckFiles returns an error where a file that a request sends is gone or has changed, or where there is no place for
// its reply: an open file of the run that was interrupted is not one of the process that resumes it.
func CheckFiles(r *request.Request) error {
	for _, part := range r.Body {
		if part.File == "" || part.File == request.StdinFile {
			continue
		}
		file, err := request.OpenFile(part)
		if err != nil {
			return fmt.Errorf("the request's body: %w", err)
		}
		_ = file.Close()
	}
	if r.Output == "" {
		return nil
	}
	d, err := download.DestinationOf(r.Output)
	if err == nil && d.Descriptor == 0 && files.IsDescriptor(r.Output) {
		err = errors.New("it was an open file of another process\nhint: cancel the task, and type its line again")
	}
	return outputError(r.Output, err)
}

// outputError says what is wrong with -o. The exit status is curl's for a failed write.
func outputError(path string, err error) error {
	if err == nil {
		return nil
	}
	if detail := (*fs.PathError)(nil); errors.As(err, &detail) && detail.Path == path {
		err = detail.Err
	}
	return &localError{"write the reply to " + path, err, exitWrite}
}
