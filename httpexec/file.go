package httpexec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/10f93571/retry/httpexec/request"
)

// fileBody is a file as it was when the task was made.
type fileBody struct {
	*os.File
	part request.Part
}

// openFile opens the file of a part, and refuses another than the task was made with.
func openFile(part request.Part) (*fileBody, error) {
	if part.Time.IsZero() {
		if err := stamp(&part); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(part.File)
	if err != nil {
		return nil, err
	}
	f := &fileBody{file, part}
	if err := f.same(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Size implements Body.
func (f *fileBody) Size() int64 { return f.part.Size }

// same tells whether the file is still what it was. What is another file by now is not looked at: this one is open.
func (f *fileBody) same() error {
	info, err := f.Stat()
	if err == nil && (info.Size() != f.part.Size || !info.ModTime().Equal(f.part.Time)) {
		return fmt.Errorf("%s has changed since the task was made\nhint: start anew, or give it on stdin, which is kept", f.part.File)
	}
	return err
}

// StreamError says that a part of a body comes from what can be read only once: a pipe, a terminal, a process substitution. Whoever reads it
// to its end can give it as stdin instead.
type StreamError struct{ Part int }

func (e *StreamError) Error() string {
	return "it is no regular file, and can be read only once\nhint: give it on stdin, and nothing else"
}

// Stamp notes how large the files of a body are and when they were changed. It returns a *StreamError for the first that is no regular file.
func Stamp(r *request.Request) error {
	for i := range r.Body {
		part := &r.Body[i]
		if part.File == "" || part.File == request.StdinFile {
			continue
		}
		err := stamp(part)
		if stream := (*StreamError)(nil); errors.As(err, &stream) {
			stream.Part = i
		}
		if err != nil {
			return fmt.Errorf("the request's body: %w", err)
		}
	}
	return nil
}

func stamp(part *request.Part) error {
	info, err := os.Stat(part.File)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "read", Path: part.File, Err: errors.New("it is a directory")}
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "read", Path: part.File, Err: &StreamError{}}
	}
	file, err := os.Open(part.File) // who may not read it is to know before anything is sent
	if err != nil {
		return err
	}
	part.Size, part.Time = info.Size(), info.ModTime().UTC()
	return file.Close()
}
