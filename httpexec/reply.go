package httpexec

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// reply is the reply to the last request of an attempt.
type reply struct {
	status int    // 0 for none
	proto  string // "HTTP/1.1"
	header http.Header
	head   []byte // the headers to show; empty without -i
	body   *spool.Spool
	whole  bool
	inPart bool // the body is in the part file

	// For a later attempt that continues the body:
	source    string // see download.SourceOf
	validator string
	encoding  string // see download.EncodingOf
	end       int64  // the size of the body after this reply; -1 = unknown
	total     int64  // the size of the whole body; -1 = unknown
	oldChunks bool   // it has a Transfer-Encoding, but is in HTTP/1.0
}

// setHeader keeps what is known before the body is read.
func (r *reply) setHeader(response *http.Response) {
	r.status, r.proto, r.header = response.StatusCode, response.Proto, response.Header
	r.encoding = download.EncodingOf(response.Header)
	r.end, r.total = response.ContentLength, response.ContentLength
}

// bodyWriter writes to a spool until that has its full size, and marks its errors as errors of this machine, not of the
// network.
type bodyWriter struct {
	spool *spool.Spool
	full  int64
}

func (r *bodyWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > r.full-r.spool.Size() {
		return 0, errSurplus
	}
	n, err := r.spool.Write(p)
	if err != nil {
		err = &localError{"keep the reply", err, exitWrite}
	}
	return n, err
}

// tail returns at most that many bytes from the end of the body.
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

// captured returns the end of the body, for the journal. Secrets that the server repeats are masked, also a secret of
// which the end alone would be stored.
func (r *reply) captured(o *task.Options, refs *request.References) string {
	if r.body == nil || o.Capture != task.CaptureBoth && (o.Capture != task.CaptureStderr || r.status < 400) {
		return ""
	}
	more := refs.Longest()
	if o.Mask != "" {
		more += task.StoredTail
	}
	looked := task.StoredTail + more
	said := text.MaskPattern(refs.Clean(r.tail(looked)), o.Mask)
	if r.body.Size() > looked {
		said = said[min(more, int64(len(said))):]
	}
	return said[max(0, len(said)-task.StoredTail):]
}

// flat returns the header with the values of each name joined.
func (r *reply) flat() map[string]string {
	flat := make(map[string]string, len(r.header))
	for name, values := range r.header {
		flat[name] = strings.Join(values, ", ")
	}
	return flat
}

// writeTo writes the header, if it is shown, and the body.
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

// recordedConn keeps what is read from a connection, so that the header of a reply can be shown as it was received.
type recordedConn struct {
	net.Conn
	mutex sync.Mutex
	off   bool // the header is complete
	bytes []byte
}

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.off {
		c.bytes = append(c.bytes, p[:n]...)
	}
	return n, err
}

// header returns the header of the reply after those of interim replies, and ends the recording. Nil: nothing that is
// HTTP/1 was recorded.
func (c *recordedConn) header() []byte {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.off = true
	unread := bytes.NewReader(c.bytes)
	reader := bufio.NewReader(unread)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return nil
		}
		if response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			return c.bytes[:len(c.bytes)-unread.Len()-reader.Buffered()]
		}
	}
}

// formatHeader writes a header that was not recorded, in the way of curl. HTTP/2 has no text that could be recorded.
func formatHeader(response *http.Response) []byte {
	var b bytes.Buffer
	header := response.Header
	if response.ProtoMajor == 2 {
		fmt.Fprintf(&b, "HTTP/2 %d \r\n", response.StatusCode)
		header = http.Header{}
		for name, values := range response.Header {
			header[strings.ToLower(name)] = values
		}
	} else {
		fmt.Fprintf(&b, "%s %s\r\n", response.Proto, response.Status)
	}
	_ = header.Write(&b) // to memory: it cannot fail
	b.WriteString("\r\n")
	return b.Bytes()
}
