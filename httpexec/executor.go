// Package httpexec executes the attempts of an HTTP request. An attempt sends one request, and another for each
// redirect that it follows.
package httpexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"time"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Executor sends the request of one task. The task says what is sent; the fields say what this process adds.
type Executor struct {
	Stdin     Body                                      // the part of the request's body that comes from stdin; may be nil
	Keep      func(*task.Task) error                    // called once, before the first request; may be nil
	Lookup    func(name string) (value string, ok bool) // the environment, for {env:NAME} and the proxies
	UserAgent string                                    // "retry/1.0"
	Output    Output
	Temporary func() (*os.File, error) // makes a file for a large body
	Progress  func(task.Transfer)      // called with the progress of a transfer; may be nil
	Boot      func() string            // names this boot of the machine; "" where the system has no name. May be nil
	Delivery  *Delivery                // for a worker; nil in the wrapper

	resolver   *net.Resolver        // nil: the system's
	prepared   map[int]*spool.Spool // the parts of the body that were stripped or encoded, by their index
	kept       bool
	cookies    *cookies           // nil: none are kept
	challenge  challenge          // for --digest
	lastReply  *reply             // for Flush
	last       *exchange          // for Flush, if there is a format to write
	unfinished *reply             // a reply whose body was cut, and which the next attempt can continue
	partFile   *download.PartFile // becomes the file of -o; nil: there is none
}

// attempt is one request under way, or several where redirects are followed.
type attempt struct {
	*Executor
	*plan
	tracer     *tracer     // of the latest request
	written    int         // how many requests were written
	latest     wireRequest // which was sent last
	redirects  int         // how many were followed
	redirected bool        // the first request was answered, with a redirect to its result
	reply      reply       // to the latest request
	request    *request.Request
	number     int               // of the attempt
	started    func(string) bool // see runner.Call
	continues  bool              // the next attempt may ask for the rest of a body that is cut
	noted      bool              // the journal has what an earlier attempt left
	ranged     bool              // the latest request asks for the rest of a body
	resumed    int64             // how much of the body earlier attempts received
	meter      *meter            // nil without Progress
	head       []byte            // the headers of all replies, if they are shown
}

// Execute implements runner.Executor. When ctx ends first, the connection is closed.
func (e *Executor) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	begun := time.Now()
	signals := c.Signals
	if e.Delivery != nil {
		own := *e // several attempts run at a time
		defer own.free(t)
		e, signals = &own, nil // the worker ends the context
	}
	ctx, stopListening := runner.WithSignals(ctx, signals)
	a := &attempt{Executor: e, tracer: &tracer{}, request: request.Of(t), number: c.Number, started: c.Started,
		meter: newMeter(e.Progress)}
	err := a.prepare(t)
	if err == nil {
		err = a.open(t)
	}
	if err == nil {
		err = a.run(ctx)
	}
	a.meter.end()
	a.saveCookies()
	if !errors.As(err, new(*localError)) {
		err = transport.Explain(ctx, err)
	}
	sig := stopListening()
	if a.plan.body != nil {
		a.plan.body.close()
	}
	o := a.outcome(err, time.Now())
	// The journal and the line of an attempt have room for one line.
	o.Message = strings.ReplaceAll(a.refs.Clean(o.Message), "\nhint: ", "; ")
	o.Stop = sig
	o.Duration = time.Since(begun)
	o.Reply.Phases.Total = o.Duration
	o.Stdout = a.reply.captured(&t.Options, a.refs)
	e.lastReply = &a.reply
	if a.request.WriteOut != "" && a.Delivery == nil {
		e.last = a.exchange(t, o)
	}
	return o
}

// prepare makes the plan of the attempt. Keep, which stores what a resume needs, is called before the first request.
func (a *attempt) prepare(t *task.Task) (err error) {
	if a.plan, err = a.Executor.plan(t); err == nil {
		err = a.loadCookies(a.request, t)
	}
	if err == nil && a.Delivery != nil {
		err = a.Delivery.address(a.plan, t, a.number, time.Now())
	}
	if err != nil || a.Keep == nil || a.kept {
		return err
	}
	a.kept = true
	if err := a.Keep(t); err != nil {
		return &localError{"keep the request's body", err, task.ExitInternal}
	}
	return nil
}

// run sends the request, follows redirects, and reads the reply.
func (a *attempt) run(ctx context.Context) error {
	a.checkContinues()
	for h, redirects := a.first, 0; ; redirects++ {
		a.askForRest(&h)
		a.latest, a.redirects = h, redirects
		response, done, err := a.sendAuthorized(ctx, h)
		if err != nil {
			return err
		}
		if a.network.MaxRedirects == 0 {
			return a.readReply(response, done)
		}
		to, ok, err := h.redirect(response.StatusCode, response.Header.Get("Location"), a.methodGiven)
		if !ok && err == nil {
			return a.readReply(response, done)
		}
		a.reply.setHeader(response)
		if err == nil && to.body == nil {
			err = a.tracer.checkSent(response)
		}
		done()
		if err == nil && redirects == max(a.network.MaxRedirects, 0) {
			err = &loopError{redirects}
		}
		if err != nil {
			return err
		}
		if a.netrc != nil && to.origin() != h.origin() {
			a.authorizeFor(&to)
		}
		a.redirected = a.redirected || answered(h, to, response.StatusCode)
		if request.Value(h.header, request.KeyHeader) != "" && request.Value(to.header, request.KeyHeader) == "" {
			// The other server cannot tell by the key that it has this request already. A GET there, for the result of
			// a POST, does not make the POST safe.
			without := request.Request{Method: to.method, Idempotent: a.request.Idempotent}
			a.Safety = Safety{Idempotent: a.Safety.Idempotent && without.Safe()}
		}
		h = to
	}
}

// send sends one request. The request is never sent again unseen: that is done by the connection pool of net/http,
// which NewClientConn does not use. Where a kept connection turns out to be closed before a byte of the request was
// written, another one is made.
func (a *attempt) send(ctx context.Context, h wireRequest) (*http.Response, func(), error) {
	h = a.withCookies(h)
	response, done, err := a.sendOnce(ctx, &h, false)
	if err != nil && a.tracer.kept && !a.tracer.sent() && ctx.Err() == nil && !errors.As(err, new(*localError)) {
		response, done, err = a.sendOnce(ctx, &h, true)
	}
	if err != nil {
		return nil, nil, err
	}
	a.tracer.enter(stageBody)
	if a.cookies != nil {
		a.cookies.receive(response, h.url, time.Now())
	}
	a.keepHead(response)
	return response, done, nil
}

// sendOnce sends a request over a kept connection, or over a fresh one.
func (a *attempt) sendOnce(ctx context.Context, h *wireRequest, fresh bool) (*http.Response, func(), error) {
	a.tracer, a.reply = &tracer{}, reply{}
	defer func() { a.written += a.tracer.requests() }()
	proxy, err := a.proxy(h.url)
	if err != nil {
		return nil, nil, err
	}
	a.tracer.through(proxy, h.url.Scheme)
	traced := ctx
	if !a.isDirect(h, proxy) { // which tells the tracer itself
		traced = httptrace.WithClientTrace(ctx, a.tracer.trace())
	}
	request, err := h.build(traced)
	if err != nil {
		return nil, nil, err
	}
	if h.body != nil && h.body.size > 0 {
		if h.body.size > inOnePiece {
			a.tracer.ended = make(chan struct{})
		}
		request.Body = a.meter.watched(request.Body, task.Transfer{Sending: true, Total: h.body.size})
	}
	c, err := a.connection(traced, h, proxy, fresh)
	if err != nil {
		closeBody(request)
		return nil, nil, err
	}
	if d, ok := c.Client.(*direct); ok {
		d.tracer = a.tracer
	}
	a.tracer.startRequest()
	a.tracer.conn.sending.Store(nil)
	if a.tracer.ended != nil && !a.tracer.http2 {
		a.tracer.conn.sending.Store(a.tracer)
	}
	response, err := c.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusContinue {
		err = errNoStatus
	}
	if err != nil {
		a.release(ctx, c, err)
		closeBody(request) // net/http does not where it has not begun to read
		return nil, nil, err
	}
	if c.HTTP2 && a.Delivery != nil && a.Safety.Idempotent {
		a.Delivery.Pool.Share(c)
	}
	return response, func() {
		_ = response.Body.Close()
		a.release(ctx, c, nil)
	}, nil
}

// inOnePiece is the size of a body that is written about together with its header: over HTTP/1 nothing cuts it. How
// much more finds room is the server's choice, which sets the size of its socket's buffer, or of the window of HTTP/2.
const inOnePiece = 4 << 10

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// withConnectTimeout returns a context that ends after the connect timeout.
func (a *attempt) withConnectTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := a.network.ConnectTimeout
	if limit <= 0 {
		return ctx, func() {}
	}
	cause := fmt.Errorf("%w after %s", runner.ErrTimeout, text.FormatDuration(limit))
	return context.WithTimeoutCause(ctx, limit, cause)
}

// readReply reads the whole reply.
func (a *attempt) readReply(response *http.Response, done func()) error {
	defer done()
	err := a.readBody(response)
	if err == nil && response.StatusCode < 400 {
		err = a.tracer.checkSent(response)
		a.reply.whole = a.reply.whole && err == nil
	}
	return err
}

func (a *attempt) readBody(response *http.Response) error {
	a.reply.setHeader(response)
	if response.StatusCode == http.StatusSwitchingProtocols {
		a.reply.whole = true
		return nil // what follows is another protocol, and may have no end
	}
	if a.Delivery != nil {
		return a.readBounded(response)
	}
	if err := a.prepareBody(response); err != nil || a.reply.whole {
		return err
	}
	if err := a.checkCoding(response); err != nil {
		return err
	}
	body := a.meter.watched(response.Body, task.Transfer{Total: a.reply.total, From: a.resumed})
	limit := int64(math.MaxInt64)
	if a.ranged && response.StatusCode == http.StatusPartialContent {
		limit = a.reply.end
	}
	_, err := io.Copy(&bodyWriter{a.reply.body, limit}, body)
	switch {
	case errors.Is(err, errSurplus):
		a.dropUnfinished()
	case err == nil && a.endsWithoutNotice(response):
		err = errNoCloseNotify
	case err == nil:
		err = a.checkRange()
	}
	a.reply.whole = err == nil
	a.keepUnfinished(response, err)
	if a.reply.whole && a.ranged && a.reply.status == http.StatusPartialContent {
		a.reply.status = http.StatusOK // nobody but retry has asked for a part
	}
	return err
}

// checkCoding refuses a body that would be written with marks of its transfer in it.
func (a *attempt) checkCoding(response *http.Response) error {
	coding := download.EncodingOf(response.Header)
	lengths := response.Header.Values("Content-Length")
	switch {
	case a.reply.oldChunks:
		return errOldChunks
	case response.ProtoMajor > 1 && (len(lengths) > 1 || len(lengths) == 1 && response.ContentLength < 0 ||
		response.Header.Get("Transfer-Encoding") != ""): // which net/http passes over (RFC 9113, section 8.1.1)
		return errLength
	case a.network.Compressed && coding != "" && coding != "identity" && hasBody(response) && response.StatusCode < 400:
		return fmt.Errorf("%w %q", errCoding, coding) // net/http has taken gzip off
	}
	return nil
}

// hasBody reports whether a reply has one. Where it has none, the header describes what another reply would have (RFC
// 9110, section 8.6).
func hasBody(response *http.Response) bool {
	return response.Request.Method != http.MethodHead && response.ContentLength != 0
}

// endsWithoutNotice reports whether a body ended with the connection, and the other end did not say so with a
// close_notify: then it was cut (RFC 9112, section 9.8). crypto/tls reports both ends as io.EOF, but it reads a
// connection to its end only without a close_notify. Of one that is to be closed, net/http reads no more than the body.
func (a *attempt) endsWithoutNotice(response *http.Response) bool {
	return response.ProtoMajor == 1 && response.Close && a.reply.total < 0 && a.tracer.secure && a.tracer.conn.ended()
}

// open checks, before anything is sent, that the reply can be written to the file of -o.
func (a *attempt) open(t *task.Task) error {
	path := a.request.Output
	if path == "" || a.partFile != nil || a.Delivery != nil {
		return nil
	}
	d, err := download.DestinationOf(path)
	if err == nil && !d.InPlace {
		err = a.adopt(t, d)
	}
	return outputError(path, err)
}

// keepHead adds a reply's header to those of earlier replies: curl shows those of redirects, too.
func (a *attempt) keepHead(response *http.Response) {
	head := a.tracer.recorded.header() // which ends the recording
	old := response.ProtoMajor == 1 && response.ProtoMinor == 0
	a.reply.oldChunks = old && bytes.Contains(bytes.ToLower(head), []byte("\ntransfer-encoding:"))
	if !a.request.Include || a.Delivery != nil {
		return
	}
	if head == nil {
		head = formatHeader(response)
	}
	a.head = append(a.head, head...)
	a.reply.head = a.head
}
