package httpexec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
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

// Read keeps the last bytes back where they are not those that the task began with: the server does not get a whole
// request then.
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

// bodies are sent one after another.
type bodies struct {
	pieces []Body
	size   int64
}

func (j *bodies) add(b Body) {
	j.pieces = append(j.pieces, b)
	j.size += b.Size()
}

// reader reads them from the start.
func (j *bodies) reader() *bodyReader {
	readers := make([]io.Reader, len(j.pieces))
	for i, piece := range j.pieces {
		readers[i] = io.NewSectionReader(piece, 0, piece.Size())
	}
	return &bodyReader{from: io.MultiReader(readers...), left: j.size, same: j.same}
}

// same tells whether a file has changed since the task was made.
func (j *bodies) same() error {
	for _, piece := range j.pieces {
		if f, ok := piece.(*request.FileBody); ok {
			if err := f.Same(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *bodies) close() {
	for _, piece := range j.pieces {
		if f, ok := piece.(*request.FileBody); ok {
			_ = f.Close()
		}
	}
}

// queryLimit is how long a query may be that -G makes of data.
const queryLimit = 1 << 20

// body puts the parts of a request's body together. Whoever is done with it closes it.
func (e *Executor) body(r *request.Request) (*bodies, error) {
	whole := &bodies{}
	for i, part := range r.Body {
		if r.Boundary != "" {
			whole.add(textBody(request.FormHead(r.Boundary, part)))
		}
		content, err := e.part(i, part)
		if err != nil {
			whole.close()
			return nil, unreadable(err)
		}
		whole.add(content)
		if r.Boundary != "" {
			whole.add(textBody("\r\n"))
		}
	}
	if r.Boundary != "" {
		whole.add(textBody("--" + r.Boundary + "--\r\n"))
	}
	return whole, nil
}

func textBody(s string) Body { return bytes.NewReader([]byte(s)) }

// part returns what a part holds.
func (e *Executor) part(i int, part request.Part) (Body, error) {
	if made := e.prepared[i]; made != nil {
		return made, nil
	}
	content, err := e.source(part)
	if err != nil || !part.Strip && !part.Encode {
		return content, err
	}
	if f, ok := content.(*request.FileBody); ok {
		defer func() { _ = f.Close() }()
	}
	made, err := e.transform(content, part)
	if err != nil {
		return nil, err
	}
	if e.prepared == nil {
		e.prepared = map[int]*spool.Spool{}
	}
	e.prepared[i] = made
	return made, nil
}

// dropPrepared frees the parts that were stripped or encoded.
func (e *Executor) dropPrepared() {
	for _, made := range e.prepared {
		_ = made.Close()
	}
	e.prepared = nil
}

func (e *Executor) source(part request.Part) (Body, error) {
	switch part.File {
	case "":
		return bytes.NewReader(part.Text), nil
	case request.StdinFile:
		if e.Stdin == nil {
			return nil, errors.New("what was read from stdin is no longer there\nhint: start anew")
		}
		return e.Stdin, nil
	}
	return request.OpenFile(part)
}

// transform makes of a part what is sent, once for all attempts.
func (e *Executor) transform(content Body, part request.Part) (*spool.Spool, error) {
	made := spool.New(spool.MemoryLimit, e.temporary)
	reader := &bodyReader{from: io.NewSectionReader(content, 0, content.Size()), left: content.Size()}
	if f, ok := content.(*request.FileBody); ok {
		reader.same = f.Same
	}
	if _, err := io.Copy(&transformer{made, part}, reader); err != nil {
		_ = made.Close()
		return nil, err
	}
	return made, nil
}

func (e *Executor) temporary() (*os.File, error) {
	if e.Temporary == nil {
		return nil, errors.New("there is no room for what is large")
	}
	return e.Temporary()
}

// transformer strips and encodes what is written to it.
type transformer struct {
	to   io.Writer
	part request.Part
}

func (t *transformer) Write(p []byte) (int, error) {
	out := p
	if t.part.Strip {
		out = slices.DeleteFunc(bytes.Clone(p), func(c byte) bool { return c == '\r' || c == '\n' || c == 0 })
	}
	if t.part.Encode {
		out = []byte(request.FormEncode(string(out)))
	}
	if _, err := t.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// query appends the body to the query, as curl's -G does.
func (p *plan) query(body *bodies) error {
	if body.size > queryLimit {
		return fmt.Errorf("%w: its query would be larger than 1 MiB", request.ErrURL)
	}
	data, err := io.ReadAll(body.reader())
	if err != nil {
		return err
	}
	if err := checkQuery(data); err != nil {
		return err
	}
	u := p.first.url
	if u.RawQuery != "" && len(data) > 0 {
		u.RawQuery += "&"
	}
	u.RawQuery += request.EncodeIf(string(data), func(c byte) bool { return c > '~' })
	return nil
}

// checkQuery refuses what would end a URL.
func checkQuery(data []byte) error {
	if bytes.ContainsFunc(data, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: the data for its query holds a space or a control character"+
			"\nhint: give it with --data-urlencode", request.ErrURL)
	}
	return nil
}
