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

// queryLimit is how long a query may be that -G makes of data.
const queryLimit = 1 << 20

// body puts the parts of a request's body together. Whoever is done with it closes it.
func (e *Executor) body(r *request.Request) (*joined, error) {
	whole := &joined{}
	for i, part := range r.Body {
		if r.Boundary != "" {
			whole.add(txt(formHead(r.Boundary, part)))
		}
		content, err := e.part(i, part)
		if err != nil {
			whole.close()
			return nil, unreadable(err)
		}
		whole.add(content)
		if r.Boundary != "" {
			whole.add(txt("\r\n"))
		}
	}
	if r.Boundary != "" {
		whole.add(txt("--" + r.Boundary + "--\r\n"))
	}
	return whole, nil
}

func txt(s string) Body { return bytes.NewReader([]byte(s)) }

// part returns what a part holds.
func (e *Executor) part(i int, part request.Part) (Body, error) {
	if made := e.made[i]; made != nil {
		return made, nil
	}
	content, err := e.source(part)
	if err != nil || !part.Strip && !part.Encode {
		return content, err
	}
	if f, ok := content.(*fileBody); ok {
		defer func() { _ = f.Close() }()
	}
	made, err := e.transform(content, part)
	if err != nil {
		return nil, err
	}
	if e.made == nil {
		e.made = map[int]*spool.Spool{}
	}
	e.made[i] = made
	return made, nil
}

// dropMade lets go of the parts that were transformed.
func (e *Executor) dropMade() {
	for _, made := range e.made {
		_ = made.Close()
	}
	e.made = nil
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
	return openFile(part)
}

// transform makes of a part what is sent, once for all attempts.
func (e *Executor) transform(content Body, part request.Part) (*spool.Spool, error) {
	made := spool.New(spool.MemoryLimit, e.temporary)
	reader := &bodyReader{from: io.NewSectionReader(content, 0, content.Size()), left: content.Size()}
	if f, ok := content.(*fileBody); ok {
		reader.same = f.same
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
		out = []byte(formEncode(string(out)))
	}
	if _, err := t.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// query appends the body to the query, as curl's -G does.
func (p *plan) query(body Body) error {
	if body.Size() > queryLimit {
		return fmt.Errorf("%w: its query would be larger than 1 MiB", errURL)
	}
	data, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
	if err != nil {
		return unreadable(err)
	}
	if err := checkQuery(data); err != nil {
		return err
	}
	u := p.first.url
	if u.RawQuery != "" && len(data) > 0 {
		u.RawQuery += "&"
	}
	u.RawQuery += encodeIf(string(data), func(c byte) bool { return c > '~' })
	return nil
}

// checkQuery refuses what would end a URL.
func checkQuery(data []byte) error {
	if bytes.ContainsFunc(data, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: the data for its query holds a space or a control character\nhint: give it with --data-urlencode", errURL)
	}
	return nil
}
