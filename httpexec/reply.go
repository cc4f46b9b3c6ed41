package httpexec

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/spool"
)

// reply is what came back in an attempt: of the last request of it.
type reply struct {
	status int // 0 for none
	header http.Header
	body   *spool.Spool // nil for none
	whole  bool
}

// note keeps what is known before the body.
func (r *reply) note(response *http.Response) {
	r.status, r.header = response.StatusCode, response.Header
}

// read takes the body in.
func (r *reply) read(body io.Reader) error {
	_, err := io.Copy(&room{r.body}, body)
	r.whole = err == nil
	return err
}

// room marks the errors of keeping a reply, which are of this machine.
type room struct{ spool *spool.Spool }

func (r *room) Write(p []byte) (int, error) {
	n, err := r.spool.Write(p)
	if err != nil {
		err = &localError{"keep the reply", err, exitWrite}
	}
	return n, err
}

// tail is the end of the body, for conditions to look at.
func (r *reply) tail() string {
	if r.body == nil {
		return ""
	}
	from := max(0, r.body.Size()-runner.LookedAt)
	text, err := io.ReadAll(io.NewSectionReader(r.body, from, r.body.Size()-from))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return string(text)
}

// flat is the header with one value a name.
func (r *reply) flat() map[string]string {
	flat := make(map[string]string, len(r.header))
	for name, values := range r.header {
		flat[name] = strings.Join(values, ", ")
	}
	return flat
}

// drop lets go of the body.
func (r *reply) drop() {
	if r.body != nil {
		_ = r.body.Close()
	}
}
