package httpexec

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// direct is a connection over which a worker sends small requests by HTTP/1.1. It writes a request and reads the
// reply in the goroutine of the attempt. net/http hands both over to two goroutines of each connection, which costs
// as much as the system needs to carry them; it can read a reply while it writes, which only a large request needs.
type direct struct {
	conn   *conn
	tracer *tracer          // of the request under way
	header io.LimitedReader // what is left for the header of a reply
	reader *bufio.Reader
	stop   func() bool // ends the watch over the context of a request; nil: there is none under way
	broken bool        // it carries no other request
}

// isDirect reports whether a request is sent over a direct connection: it goes to its server in one piece.
func (a *attempt) isDirect(h *wireRequest, proxy *url.URL) bool {
	return a.Delivery != nil && h.url.Scheme == "http" && proxy == nil && !a.network.Compressed &&
		(h.body == nil || h.body.size <= inOnePiece)
}

func newDirect(c *conn) *direct {
	d := &direct{conn: c}
	d.header.R = c
	d.reader = bufio.NewReader(&d.header)
	return d
}

var requestBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// RoundTrip sends a request once. The body of the reply is to be closed, and Available to be asked before the next one.
func (d *direct) RoundTrip(r *http.Request) (response *http.Response, err error) {
	text := requestBuffers.Get().(*bytes.Buffer)
	defer requestBuffers.Put(text)
	text.Reset()
	if err := r.Write(text); err != nil {
		d.broken = true
		return nil, err
	}
	d.tracer.beginRequest()
	d.stop = context.AfterFunc(r.Context(), func() { _ = d.conn.SetDeadline(time.Unix(1, 0)) })
	_, err = d.conn.Write(text.Bytes())
	d.tracer.endRequest(err)
	if err == nil {
		response, err = d.reply(r)
	}
	if err != nil {
		d.broken = true
		return nil, err
	}
	d.broken = response.Close || response.StatusCode == http.StatusSwitchingProtocols
	if response.Body != http.NoBody {
		response.Body = &directBody{response.Body, d, false}
	}
	return response, nil
}

// reply reads the header of a reply, and those of the interim ones before it.
func (d *direct) reply(r *http.Request) (response *http.Response, err error) {
	d.header.N = maxHeader
	if _, err := d.reader.Peek(1); err != nil {
		return nil, err // an empty reply is io.EOF
	}
	d.tracer.gotFirstByte()
	for {
		response, err = http.ReadResponse(d.reader, r)
		if err != nil || response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols ||
			response.StatusCode < 100 {
			if err != nil && d.header.N <= 0 { // the connection did not end, as the error says
				err = errHeader
			}
			d.header.N = math.MaxInt64
			return response, err
		}
	}
}

// directBody is the body of a reply. What is left of it when it is closed is not read: it may have no end.
type directBody struct {
	io.ReadCloser
	direct *direct
	whole  bool
}

func (b *directBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.whole = b.whole || errors.Is(err, io.EOF)
	return n, err
}

func (b *directBody) Close() error {
	b.direct.broken = b.direct.broken || !b.whole
	return nil
}

// Available returns 1 if another request may follow the last one, else 0.
func (d *direct) Available() int {
	if d.stop != nil && !d.stop() { // the deadline has been set, or is in a moment
		d.broken = true
	}
	if d.stop = nil; d.broken || d.reader.Buffered() > 0 {
		return 0
	}
	return 1
}

// Err returns an error where the connection carries no other request.
func (d *direct) Err() error {
	if d.broken {
		return errBroken
	}
	return nil
}

var errHeader = errors.New("the header of the reply has no end")

var errBroken = errors.New("the connection carries no other request")

// Reserve is for connections that carry several requests at a time.
func (d *direct) Reserve() error { return errBroken }

// Close closes the connection.
func (d *direct) Close() error {
	if d.stop != nil {
		d.stop()
	}
	return d.conn.Close()
}
