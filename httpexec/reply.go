package httpexec

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/10f93571/retry/httpexec/request"
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

	// For a later attempt that continues the body:
	url       *url.URL
	validator string
	end       int64 // the size of the body when all of this reply is there; -1 = unknown
	total     int64 // the size of all of it; -1 = unknown
}

// setHeader keeps what is known before the body arrives.
func (r *reply) setHeader(response *http.Response) {
	r.status, r.header = response.StatusCode, response.Header
	r.end, r.total = response.ContentLength, response.ContentLength
	if response.Request != nil {
		r.url = response.Request.URL
	}
}

// bodyWriter marks errors of the spool as errors of this machine, not of the network.
type bodyWriter struct{ spool *spool.Spool }

func (r *bodyWriter) Write(p []byte) (int, error) {
	n, err := r.spool.Write(p)
	if err != nil {
		err = &localError{"keep the reply", err, exitWrite}
	}
	return n, err
}

// tail returns at most that many bytes of the end of the body.
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

// captured is the end of the body that the journal stores. A server may repeat the secrets that it was sent: they are
// masked, and a secret that the cut would split is removed.
func (r *reply) captured(mode task.CaptureMode, refs *request.References) string {
	if r.body == nil || mode != task.CaptureBoth && (mode != task.CaptureStderr || r.status < 400) {
		return ""
	}
	looked := task.StoredTail + refs.Longest()
	text := refs.Clean(r.tail(looked))
	if r.body.Size() > looked {
		text = text[min(refs.Longest(), int64(len(text))):]
	}
	return text[max(0, len(text)-task.StoredTail):]
}

// flat returns the header with one value for each name.
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

// drop frees the body, unless it is in a part file.
func (r *reply) drop() {
	if r != nil && r.body != nil && !r.inPart {
		_ = r.body.Close()
	}
}

// recorder keeps what a server sends, until the header is complete.
type recorder struct {
	mutex sync.Mutex
	off   bool
	bytes []byte
}

// record keeps what was read.
func (r *recorder) record(p []byte) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.off {
		r.bytes = append(r.bytes, p...)
	}
}

// head returns the headers that came, those of interim replies too, and ends the recording. Nil: nothing was recorded.
func (r *recorder) head() []byte {
	if r == nil {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.off = true
	return headers1(r.bytes)
}

// headers1 cuts the body off what came over HTTP/1: everything after the first header that is not an interim one.
func headers1(text []byte) []byte {
	interim, line := false, 0
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return nil
		}
		content := bytes.TrimRight(text[at:at+n], "\r")
		at += n + 1
		switch {
		case line == 0:
			interim = isInterim(content)
		case len(content) == 0 && !interim:
			return text[:at:at]
		}
		line++
		if len(content) == 0 {
			line = 0
		}
	}
}

// isInterim knows the status lines of 1xx, less 101, after which HTTP is over.
func isInterim(line []byte) bool {
	_, status, _ := bytes.Cut(line, []byte(" "))
	return len(status) >= 3 && status[0] == '1' && string(status[:3]) != "101"
}

// shownHead writes a header where the bytes of it are unknown: HTTP/2 has none that could be shown. It looks like
// curl's.
func shownHead(response *http.Response) []byte {
	var b bytes.Buffer
	name := strings.ToLower
	if response.ProtoMajor == 2 {
		fmt.Fprintf(&b, "HTTP/2 %d \r\n", response.StatusCode)
	} else {
		fmt.Fprintf(&b, "%s %s\r\n", response.Proto, response.Status)
		name = func(canonical string) string { return canonical }
	}
	header := response.Header
	if response.ContentLength >= 0 && header.Get("Content-Length") == "" && !response.Uncompressed {
		header = header.Clone()
		header.Set("Content-Length", fmt.Sprint(response.ContentLength))
	}
	names := make([]string, 0, len(header))
	for canonical := range header {
		names = append(names, canonical)
	}
	slices.Sort(names)
	for _, canonical := range names {
		for _, value := range header[canonical] {
			fmt.Fprintf(&b, "%s: %s\r\n", name(canonical), value)
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}
