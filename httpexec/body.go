package httpexec

import (
	"errors"
	"io"
	"sort"
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
	same func() error // nil where the body cannot change
}

// Read keeps the last bytes back where they are not those that the task began with: the server does not get a whole request then.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		return n, unreadable(errors.New("it is shorter than it was"))
	case err != nil && !errors.Is(err, io.EOF):
		return n, unreadable(err)
	case b.left == 0 && b.same != nil:
		if changed := b.same(); changed != nil {
			return 0, unreadable(changed)
		}
	}
	return n, err
}

// Close leaves the body to the next attempt.
func (b *bodyReader) Close() error { return nil }

func unreadable(err error) error { return &localError{"read the request's body", err, exitRead} }

// joined are bodies one after another.
type joined struct {
	pieces []Body
	starts []int64 // of each piece
	size   int64
}

func (j *joined) add(b Body) {
	j.pieces, j.starts = append(j.pieces, b), append(j.starts, j.size)
	j.size += b.Size()
}

// Size implements Body.
func (j *joined) Size() int64 { return j.size }

// ReadAt implements io.ReaderAt.
func (j *joined) ReadAt(p []byte, offset int64) (n int, err error) {
	first := sort.Search(len(j.pieces), func(i int) bool { return j.starts[i]+j.pieces[i].Size() > offset })
	for i := first; i < len(j.pieces) && n < len(p); i++ {
		at := offset + int64(n) - j.starts[i]
		wanted := p[n:][:min(int64(len(p)-n), j.pieces[i].Size()-at)]
		read, err := j.pieces[i].ReadAt(wanted, at)
		n += read
		if read < len(wanted) {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// same tells whether a file has changed since the task was made.
func (j *joined) same() error {
	for _, piece := range j.pieces {
		if f, ok := piece.(*fileBody); ok {
			if err := f.same(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *joined) close() {
	for _, piece := range j.pieces {
		if f, ok := piece.(*fileBody); ok {
			_ = f.Close()
		}
	}
}
