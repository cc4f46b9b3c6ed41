package httpexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/httpexec/pool"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/httpexec/webhook"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// Delivery is what a worker adds to the requests that it sends. An Executor with a Delivery is safe for concurrent use,
// shows no reply, and keeps nothing between attempts. All workers of a process share one.
type Delivery struct {
	Pool *pool.Pool // of kept connections; nil: each request has one of its own

	// Control judges the addresses of a host before a connection is made, for guarded requests alone: see net.Dialer.
	// Without it they are not sent. Its error ends the task.
	Control func(host string) func(network, address string, c syscall.RawConn) error
	// Lookup finds the variables that a guarded request may name; nil: none.
	Lookup func(name string) (value string, ok bool)
	// Blob opens a part of a request's body by its SHA-256 in hexadecimal digits.
	Blob func(hash string) (content io.ReadCloser, size int64, err error)
	// Secrets sign the requests that ask for it. Without any, such a request is not sent.
	Secrets []webhook.Secret
	// TraceParent returns the header traceparent of an attempt, given that of its caller; empty: it has none. Where it is
	// nil, the caller's is sent as it is.
	TraceParent func(caller, taskID string, attempt int) string
}

// refusedError says that a guarded request must not reach an address.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return "the target is refused: " + e.cause.Error() }

func (e *refusedError) Unwrap() error { return e.cause }

// judge is the Control of the dialer of a guarded request.
func (d *Delivery) judge(host string) func(network, address string, c syscall.RawConn) error {
	control := d.Control(host)
	return func(network, address string, c syscall.RawConn) error {
		if err := control(network, address, c); err != nil {
			return &refusedError{err}
		}
		return nil
	}
}

// guard limits a request that came through the API.
func (p *plan) guard(r *request.Request, d *Delivery) error {
	if !r.Guarded {
		return nil
	}
	if d == nil || d.Control == nil {
		return &localError{"send a request of the API", errors.New("only a worker may"), task.ExitInternal}
	}
	if err := request.CheckGuarded(r); err != nil {
		return &localError{"send a request of the API", err, task.ExitInternal}
	}
	p.refs.Lookup = d.Lookup
	return nil
}

// address adds the headers of an attempt: which one it is, its span, and its signature.
func (d *Delivery) address(p *plan, t *task.Task, attempt int, now time.Time) error {
	h := p.first.header
	d.Name(t, attempt, h)
	switch {
	case !request.Of(t).Sign:
		return nil
	case len(d.Secrets) == 0: // the receiver would refuse it, or worse, take it as it is
		return &localError{"sign the request", errors.New("this worker has no --signing-secret-file"), task.ExitInternal}
	}
	var body io.ReadCloser = http.NoBody
	if p.first.body != nil {
		body = p.first.body.reader()
	}
	signature, err := webhook.Sign(d.Secrets, t.ID, now, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return err
	}
	replace(h, webhook.IDHeader, t.ID)
	replace(h, webhook.TimestampHeader, strconv.FormatInt(now.Unix(), 10))
	replace(h, webhook.SignatureHeader, signature)
	return nil
}

// Name adds the headers that name an attempt, of a request or of a call: its number, its task and its span.
func (d *Delivery) Name(t *task.Task, attempt int, h http.Header) {
	replace(h, "Retry-Attempt", strconv.Itoa(attempt))
	replace(h, "Retry-Task-Id", t.ID)
	const parent = "Traceparent"
	if d.TraceParent == nil {
		return
	}
	if own := d.TraceParent(request.Value(h, parent), t.ID, attempt); own != "" {
		replace(h, parent, own)
	} else {
		request.Remove(h, parent) // an invalid one means nothing to whoever gets it
	}
}

func replace(h http.Header, name, value string) {
	request.Remove(h, name)
	h[name] = []string{value}
}

// key says which connections the request may share; ok is false where it has one of its own. A kept connection may
// break just when the request is sent, and nobody knows then what the server has done.
func (a *attempt) key(h *wireRequest, proxy *url.URL) (key pool.Key, ok bool) {
	if a.Delivery == nil || a.Delivery.Pool == nil {
		return key, false
	}
	n := &a.network
	key = pool.Key{
		Scheme: h.url.Scheme, Address: strings.ToLower(h.address()), Socket: n.UnixSocket,
		CACert: n.CACert, Cert: n.Cert, Secret: n.Key,
		Insecure: n.Insecure, HTTP1: n.HTTP1, Compressed: n.Compressed, Guarded: a.request.Guarded,
		Direct: a.isDirect(h, proxy),
	}
	if proxy != nil {
		key.Proxy = proxy.String()
	}
	if given := a.resolved[key.Address]; given != nil {
		key.Resolved = strings.Join(given, ",")
	}
	return key, true
}

// connection returns a kept connection, or makes one.
func (a *attempt) connection(ctx context.Context, h *wireRequest, proxy *url.URL, fresh bool) (*pool.Conn, error) {
	key, pooled := a.key(h, proxy)
	if pooled && !fresh && a.Safety.Idempotent {
		if c := a.Delivery.Pool.Get(key); c != nil {
			a.tracer.conn, a.tracer.http2, a.tracer.kept = c.Of.(*conn), c.HTTP2, true
			return c, nil
		}
	}
	client, err := a.newClient(ctx, h, proxy, key.Direct)
	if err != nil || !pooled {
		return &pool.Conn{Client: client}, err
	}
	c := &pool.Conn{Client: client, Key: key, HTTP2: a.tracer.http2, Made: time.Now(), Of: a.tracer.conn}
	if socket, ok := a.tracer.conn.Conn.(syscall.Conn); ok {
		c.Raw, _ = socket.SyscallConn()
	}
	return c, nil
}

// newClient makes a connection.
func (a *attempt) newClient(ctx context.Context, h *wireRequest, proxy *url.URL, isDirect bool) (pool.Client, error) {
	ctx, cancel := a.withConnectTimeout(ctx)
	defer cancel()
	if isDirect {
		ctx = httptrace.WithClientTrace(ctx, a.tracer.trace()) // for the lookup of the host
		_, err := a.dialer(a.tracer, h.url.Hostname()).dial(ctx, h.address())
		if err != nil {
			return nil, transport.Explain(ctx, err)
		}
		return newDirect(a.tracer.conn), nil
	}
	t, err := a.transport(h.url, proxy, a.tracer)
	if err != nil {
		return nil, err
	}
	if a.Delivery == nil && (a.request.Include || h.url.Scheme == "http") {
		a.tracer.recordHeader(t, h.url)
	}
	c, err := t.NewClientConn(ctx, h.url.Scheme, h.address())
	return c, transport.Explain(ctx, err)
}

// release gives a connection back, or closes it. It is kept where the reply was read to its end. One of HTTP/2 may have
// replies that nobody reads any more, but after a timeout it may be dead.
func (a *attempt) release(ctx context.Context, c *pool.Conn, err error) {
	if a.Delivery == nil || a.Delivery.Pool == nil {
		_ = c.Close()
		return
	}
	usable := ctx.Err() == nil
	if c.HTTP2 {
		usable = usable && (err == nil || errors.As(err, new(transport.StreamError))) && c.Err() == nil
	} else {
		usable = usable && err == nil && c.Available() > 0
	}
	a.Delivery.Pool.Put(c, usable)
}

// replyLimit is how much of the body of a reply a worker reads. The status says what became of the request.
const replyLimit = 1 << 20

var copyBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// readBounded reads the beginning of a reply. A missing close_notify is no failure: the body is passed on to nobody.
func (a *attempt) readBounded(response *http.Response) error {
	if response.Body == http.NoBody {
		a.reply.whole = true
		return nil
	}
	a.reply.body = spool.New(replyLimit, nil)
	buffer := copyBuffers.Get().(*[16 << 10]byte)
	defer copyBuffers.Put(buffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{a.reply.body}, io.LimitReader(response.Body, replyLimit), buffer[:])
	a.reply.whole = err == nil
	return err
}

// blob is a part of a body that is opened for each reading.
type blob struct {
	open  func() (io.ReadCloser, int64, error)
	first io.ReadCloser // opened to learn the size; nil once it is read
	size  int64
}

// blob opens a body that is kept beside the store. One that has lost a part on the disk is not sent.
func (e *Executor) blob(hash string, size int64) (*blob, error) {
	if e.Delivery == nil || e.Delivery.Blob == nil {
		return nil, errors.New("it is in the blob store of another process")
	}
	if !request.IsBlob(hash) {
		return nil, fmt.Errorf("invalid name of a blob %q", hash)
	}
	b := &blob{open: func() (io.ReadCloser, int64, error) { return e.Delivery.Blob(hash) }}
	var err error
	if b.first, b.size, err = b.open(); err != nil {
		return nil, fmt.Errorf("blob %s: %w", hash, err)
	}
	if b.size != size {
		return nil, errors.Join(fmt.Errorf("blob %s has %d bytes on the disk, and had %d", hash, b.size, size), b.Close())
	}
	return b, nil
}

// Size implements Body.
func (b *blob) Size() int64 { return b.size }

// ReadAt implements Body. A blob is read by reader instead.
func (b *blob) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// Close closes what nobody has read.
func (b *blob) Close() error {
	if b.first == nil {
		return nil
	}
	return b.first.Close()
}

func (b *blob) reader() io.ReadCloser {
	r := &blobReader{open: b.open, from: b.first}
	b.first = nil
	return r
}

// blobReader opens the blob when it is read, which may be in another goroutine than that of Close.
type blobReader struct {
	open   func() (io.ReadCloser, int64, error)
	mutex  sync.Mutex
	from   io.ReadCloser
	closed bool
}

func (r *blobReader) Read(p []byte) (int, error) {
	from, err := r.stream()
	if err != nil {
		return 0, err
	}
	return from.Read(p)
}

func (r *blobReader) stream() (_ io.ReadCloser, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case r.closed:
		return nil, net.ErrClosed
	case r.from == nil:
		r.from, _, err = r.open()
	}
	return r.from, err
}

func (r *blobReader) Close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed || r.from == nil {
		r.closed = true
		return nil
	}
	r.closed = true
	return r.from.Close()
}
