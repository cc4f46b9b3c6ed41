package httpexec

import (
	"errors"
	"io"
)

// Body is what a request carries. Every attempt reads it from the start. A spool is one, and so is an io.SectionReader.
type Body interface {
	io.ReaderAt
	Size() int64
}

// bodyReader marks the errors of a body, which are of this machine and not of the network.
type bodyReader struct {
	from io.Reader
	left int64
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		err = &localError{"read the request's body", errors.New("it is shorter than it was"), exitRead}
	case err != nil && !errors.Is(err, io.EOF):
		err = &localError{"read the request's body", err, exitRead}
	}
	return n, err
}

// Close leaves the body to the next attempt.
func (b *bodyReader) Close() error { return nil }
