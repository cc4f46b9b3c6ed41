package httpexec

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// reply is what came back in an attempt: of the last request of it.
type reply struct {
	status int // 0 for none
	header http.Header
	head   []byte // the header as it came, where it is shown
	body   *spool.Spool
	whole  bool
	inPart bool // the body is the part file's

	// For another attempt to go on with:
	url       *url.URL
	validator string
	end       int64 // the size of the body when all of this reply is there; -1 = unknown
	total     int64 // the size of all of it; -1 = unknown
}

// note keeps what is known before the body.
func (r *reply) note(response *http.Response) {
	r.status, r.header = response.StatusCode, response.Header
	r.end, r.total = response.ContentLength, response.ContentLength
	if response.Request != nil {
		r.url = response.Request.URL
	}
}

// The sizes of the buffer for a body whose size is known, and of that for any other.
const (
	minBuffer = 4 << 10
	buffer    = 64 << 10
	maxBuffer = 256 << 10
)

// read takes the body in.
func (r *reply) read(body io.Reader, length int64) error {
	size := int64(buffer)
	if length >= 0 {
		size = min(max(length+1, minBuffer), maxBuffer) // a byte more, so that the end comes with the last ones
	}
	_, err := io.CopyBuffer(&room{r.body}, struct{ io.Reader }{body}, make([]byte, size))
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

// tail is the end of the body, of so many bytes at most.
func (r *reply) tail(most int64) string {
	if r.body == nil {
		return ""
	}
	from := max(0, r.body.Size()-most)
	var text strings.Builder
	text.Grow(int(r.body.Size() - from))
	if _, err := io.Copy(&text, io.NewSectionReader(r.body, from, r.body.Size()-from)); err != nil {
		return ""
	}
	return text.String()
}

// captured is what the journal keeps of the body. A server may repeat what it was sent: secrets are left out, also what the cut leaves of one.
func (r *reply) captured(mode task.CaptureMode, refs *references) string {
	if r.body == nil || mode != task.CaptureBoth && (mode != task.CaptureStderr || r.status < 400) {
		return ""
	}
	looked := task.StoredTail + refs.longest()
	text := refs.clean(r.tail(looked))
	if r.body.Size() > looked {
		text = text[min(refs.longest(), int64(len(text))):]
	}
	return text[max(0, len(text)-task.StoredTail):]
}

// flat is the header with one value a name.
func (r *reply) flat() map[string]string {
	flat := make(map[string]string, len(r.header))
	for name, values := range r.header {
		flat[name] = strings.Join(values, ", ")
	}
	return flat
}

// writeTo writes the header, where it is shown, and the body.
func (r *reply) writeTo(w io.Writer) error {
	if len(r.head) > 0 {
		if _, err := w.Write(r.head); err != nil {
			return err
		}
	}
	if r.body == nil || r.body.Size() == 0 {
		return nil
	}
	_, err := r.body.WriteTo(w)
	return err
}

// drop lets go of the body, unless that is a file's.
func (r *reply) drop() {
	if r != nil && r.body != nil && !r.inPart {
		_ = r.body.Close()
	}
}
