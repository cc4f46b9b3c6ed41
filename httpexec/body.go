package httpexec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
)

// Body is what a request carries. Every attempt reads it from the start. A spool is a Body, and so is a strings.Reader.
type Body interface {
	io.ReaderAt
	Size() int64
}

// bodyReader reads a request's body, and marks its errors as errors of this machine, not of the network.
type bodyReader struct {
	from    io.Reader
	left    int64
	files   []*request.FileBody
	streams []io.Closer
}

// Read withholds the last bytes if a file has changed since the task was made, so that the server does not receive a
// whole request.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		return n, unreadable(errors.New("it is shorter than it was"))
	case err != nil && !errors.Is(err, io.EOF):
		return n, unreadable(err)
	case b.left > 0:
		return n, err
	}
	for _, f := range b.files {
		if changed := f.Same(); changed != nil {
			return 0, unreadable(changed)
		}
	}
	return n, err
}

// Close keeps the files open for the next reading.
func (b *bodyReader) Close() error {
	for _, s := range b.streams {
		_ = s.Close()
	}
	return nil
}

func unreadable(err error) error { return &localError{"read the request's body", err, exitRead} }

// bodies are sent one after another.
type bodies struct {
	pieces []Body
	files  []*request.FileBody // those of the pieces that are files
	size   int64
	text   []byte // the whole body, if it is one text
}

func (j *bodies) add(b Body) {
	j.pieces = append(j.pieces, b)
	j.size += b.Size()
	if f, ok := b.(*request.FileBody); ok {
		j.files = append(j.files, f)
	}
}

// reader reads all of them from the start.
func (j *bodies) reader() *bodyReader {
	r := &bodyReader{left: j.size, files: j.files}
	readers := make([]io.Reader, len(j.pieces))
	for i, piece := range j.pieces {
		if b, ok := piece.(*blob); ok {
			stream := b.reader()
			r.streams = append(r.streams, stream)
			readers[i] = io.LimitReader(stream, b.size)
		} else {
			readers[i] = io.NewSectionReader(piece, 0, piece.Size())
		}
	}
	r.from = io.MultiReader(readers...)
	if len(readers) == 1 {
		r.from = readers[0]
	}
	return r
}

func (j *bodies) close() {
	for _, piece := range j.pieces {
		if b, ok := piece.(*blob); ok {
			_ = b.Close()
		}
	}
	for _, f := range j.files {
		_ = f.Close()
	}
}

// queryLimit is how long the query that -G makes of data may be.
const queryLimit = 1 << 20

// body puts the parts of a request's body together. The caller closes it.
func (e *Executor) body(r *request.Request) (*bodies, error) {
	whole := &bodies{}
	for i, part := range r.Body {
		if r.Boundary != "" {
			whole.add(strings.NewReader(formHead(r, i)))
		}
		content, err := e.part(i, part)
		if err != nil {
			whole.close()
			return nil, unreadable(err)
		}
		whole.add(content)
		if r.Boundary != "" {
			whole.add(strings.NewReader("\r\n"))
		}
		if len(r.Body) == 1 && r.Boundary == "" && part.Blob+part.File == "" && !part.Strip && !part.Encode {
			whole.text = part.Text
		}
		if part.Group != "" && (i+1 == len(r.Body) || r.Body[i+1].Group != part.Group) {
			whole.add(strings.NewReader("--" + part.Group + "--\r\n\r\n"))
		}
	}
	if r.Boundary != "" {
		whole.add(strings.NewReader("--" + r.Boundary + "--\r\n"))
	}
	return whole, nil
}

// formHead returns what stands before a part of a form. Several files of one name are a form within the form.
func formHead(r *request.Request, i int) string {
	part := r.Body[i]
	switch {
	case part.Group == "":
		return request.FormHead(r.Boundary, part)
	case i > 0 && r.Body[i-1].Group == part.Group:
		return request.FormHead(part.Group, part)
	}
	outer := request.Part{Name: part.Name, Type: "multipart/mixed; boundary=" + part.Group}
	return request.FormHead(r.Boundary, outer) + request.FormHead(part.Group, part)
}

// part returns the content of a part.
func (e *Executor) part(i int, part request.Part) (Body, error) {
	if made := e.prepared[i]; made != nil {
		return made, nil
	}
	content, err := e.source(part)
	if err != nil || !part.Strip && !part.Encode {
		return content, err
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

func (e *Executor) source(part request.Part) (Body, error) {
	if part.Blob != "" {
		return e.blob(part.Blob, part.Size)
	}
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

// transform strips or encodes a part, once for all attempts.
func (e *Executor) transform(content Body, part request.Part) (*spool.Spool, error) {
	source := &bodies{}
	source.add(content)
	defer source.close()
	made := spool.New(spool.MemoryLimit, e.Temporary)
	if _, err := io.Copy(&transformer{made, part}, source.reader()); err != nil {
		_ = made.Close()
		return nil, err
	}
	return made, nil
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
		out = []byte(strings.ReplaceAll(request.PercentEncode(string(out), " "), " ", "+")) // as curl does
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

// checkQuery refuses characters that would end a URL.
func checkQuery(data []byte) error {
	if bytes.ContainsFunc(data, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: the data for its query holds a space or a control character"+
			"\nhint: give it with --data-urlencode", request.ErrURL)
	}
	return nil
}
