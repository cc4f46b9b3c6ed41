package httpexec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// sender is an executor and the request of its task.
type sender struct {
	*Executor
	Request *request.Request
	Network *request.Network // of the request
	key     string
}

// newSender returns a sender for a request.
func newSender(t *testing.T, method, url string, change func(*sender)) *sender {
	t.Helper()
	e := &sender{
		Executor: &Executor{
			UserAgent: "test",
			Output:    Output{Stdout: io.Discard},
			Temporary: func() (*os.File, error) { return spool.Temporary(t.TempDir()) },
		},
		Request: &request.Request{Method: method, URL: url},
	}
	e.Network = &e.Request.Network
	if change != nil {
		change(e)
	}
	return e
}

// task returns the task for the executor.
func (e *sender) task() *task.Task {
	return &task.Task{Kind: request.Kind, Target: e.Request, IdempotencyKey: e.key}
}

// setBody has the request take its body from stdin.
func (e *sender) setBody(body Body) {
	e.Stdin, e.Request.Body = body, []request.Part{{File: request.StdinFile}}
}

// execute runs one attempt.
func execute(t *testing.T, e *sender) task.Outcome {
	t.Helper()
	return e.Execute(t.Context(), e.task(), runner.Call{Number: 1})
}

// flush sets the status of the task after its last attempt, and returns what the executor writes to stdout.
func flush(t *testing.T, e *sender, status task.Status) string {
	t.Helper()
	var out bytes.Buffer
	e.Output.Stdout = &out
	tk := e.task()
	tk.Status = status
	sig, err := e.Flush(tk, nil)
	if sig != nil || err != nil {
		t.Errorf("flush: got %v, %v, want no signal and no error", sig, err)
	}
	return out.String()
}

func data(text string) Body { return strings.NewReader(text) }

func TestExecute(t *testing.T) {
	const get = "GET /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n"
	tests := []struct {
		name          string
		method        string
		change        func(*sender)
		reply         string
		request, body string
	}{
		{"GET", "GET", nil, okReply, get, "hello"},
		{"HEAD", "HEAD", nil, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD" + get[3:], ""},
		{"POST", "POST", func(e *sender) { e.setBody(data("a=b")) }, okReply,
			"POST /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nContent-Length: 3\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\na=b", "hello"},
		{"POST of nothing", "POST", func(e *sender) { e.setBody(data("")) }, okReply,
			"POST /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nContent-Length: 0\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n", "hello"},
		{"a host of its own", "GET", func(e *sender) { e.Request.Header = []string{"Host: virtual"} }, okReply,
			"GET /path?q=1 HTTP/1.1\r\nHost: virtual\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n", "hello"},
		{"the URL's user", "GET",
			func(e *sender) { e.Request.URL = strings.Replace(e.Request.URL, "://", "://me:secret@", 1) }, okReply,
			"GET /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nAccept: */*\r\nAuthorization: Basic bWU6c2VjcmV0\r\n\r\n", "hello"},
		{"a reply in chunks", "GET", nil,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
			get, "hello"},
		{"an interim reply", "GET", nil, "HTTP/1.1 103 Early Hints\r\n\r\n" + okReply, get, "hello"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, replies("%s", tt.reply))
			e := newSender(t, tt.method, s.url("http"), tt.change)
			o := execute(t, e)
			s.saw(1)
			if o.Exit != 0 || o.Error != task.ErrorNone || o.Reply.Status != 200 || o.Reply.Written != 1 ||
				o.Reply.Body != tt.body {
				t.Errorf("got %+v, %+v, want status 200 with body %q", o, o.Reply, tt.body)
			}
			if want := strings.Replace(tt.request, "HOST", s.address(), 1); s.requests[0] != want {
				t.Errorf("on the wire %q\nwant %q", s.requests[0], want)
			}
			if got := flush(t, e, task.Succeeded); got != tt.body {
				t.Errorf("got %q on stdout, want %q", got, tt.body)
			}
		})
	}
}

// The end of the connection may end a reply.
func TestExecuteUntilTheConnectionCloses(t *testing.T) {
	s := serve(t, closes("HTTP/1.0 200 OK\r\n\r\nhello"))
	e := newSender(t, "GET", s.url("http"), nil)
	if o := execute(t, e); o.Exit != 0 || o.Reply.Body != "hello" {
		t.Errorf("got %+v, want exit 0 and body hello", o)
	}
	s.saw(1)
}

// Every attempt reads the body from its start, and sends one request over a connection of its own.
func TestEachAttemptSendsTheSame(t *testing.T) {
	kept := spool.New(10, func() (*os.File, error) { return spool.Temporary(t.TempDir()) })
	text := strings.Repeat("0123456789", 100_000)
	_, err := io.WriteString(kept, text)
	testkit.Must(t, err)
	s := serve(t, replies("HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: 7\r\n\r\n"), closes(""), replies(okReply))
	e := newSender(t, "POST", s.url("http"), func(e *sender) { e.setBody(kept) })
	var exits []int
	for range 3 {
		o := execute(t, e)
		exits = append(exits, o.Exit)
		if o.Reply.Written != 1 {
			t.Errorf("got %d requests written, want 1", o.Reply.Written)
		}
		flush(t, e, task.Pending)
	}
	s.saw(3)
	if fmt.Sprint(exits) != "[22 52 0]" {
		t.Errorf("got exits %v, want [22 52 0]", exits)
	}
	for i, request := range s.requests {
		if !strings.HasSuffix(request, "\r\n\r\n"+text) || request != s.requests[0] {
			t.Errorf("request %d: got another one of %d bytes, want the same as the first", i+1, len(request))
		}
	}
}

func TestReply(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 503 No\r\nContent-Length: 4\r\nRetry-After: 7\r\nX-A: 1\r\nx-a: 2\r\n\r\nbusy"))
	o := execute(t, newSender(t, "POST", s.url("http"), nil))
	s.saw(1)
	x := o.Reply
	if o.Exit != 22 || o.Message != "status 503 Service Unavailable" || x.Status != 503 || x.Body != "busy" ||
		x.ServerDelay != 7*time.Second {
		t.Errorf("got %+v, %+v, want exit 22, status 503 and a delay of 7s", o, x)
	}
	if x.Header["X-A"] != "1, 2" || x.Default != (task.Eligibility{Class: task.ClassRetryable, Event: "503"}) {
		t.Errorf("got %+v, want a joined header and a retry", x)
	}
	if p := x.Phases; p.Connect <= 0 || p.FirstByte <= 0 || p.Total < p.Connect+p.FirstByte || p.TLS != 0 ||
		p.Total != o.Duration {
		t.Errorf("got phases %+v, want times to connect and to the first byte, and the total", p)
	}
}

// Only the body of the last attempt is shown, and only if it is whole.
func TestFlush(t *testing.T) {
	failed := "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops"
	tests := []struct {
		name   string
		reply  string
		status task.Status
		want   string
	}{
		{"success", okReply, task.Succeeded, "hello"},
		{"there is another attempt", failed, task.Pending, ""},
		{"the last error's", failed, task.Exhausted, "oops"},
		{"half a body", cutReply, task.Exhausted, ""},
		{"half an error's", "HTTP/1.1 500 No\r\nContent-Length: 40\r\n\r\noops", task.Failed, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, closes(tt.reply))
			e := newSender(t, "GET", s.url("http"), nil)
			execute(t, e)
			if got := flush(t, e, tt.status); got != tt.want {
				t.Errorf("on stdout %q, want %q", got, tt.want)
			}
		})
	}
}

// A large reply is kept in a file. Conditions receive the end of it.
func TestLargeReply(t *testing.T) {
	text := strings.Repeat("x", 3<<20) + "end"
	s := serve(t, replies("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
	e := newSender(t, "GET", s.url("http"), nil)
	o := execute(t, e)
	if len(o.Reply.Body) != task.ConditionTail || !strings.HasSuffix(o.Reply.Body, "xend") {
		t.Errorf("got %d bytes for conditions, want the last %d", len(o.Reply.Body), task.ConditionTail)
	}
	if got := flush(t, e, task.Succeeded); got != text {
		t.Errorf("got %d bytes on stdout, want %d", len(got), len(text))
	}
}

func TestExecuteFollowsRedirects(t *testing.T) {
	there := serve(t, replies(okReply))
	s := serve(t, replies("HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 4\r\n\r\nbody", there.url("http")))
	e := newSender(t, "POST", s.url("http"), following(5, data("a=b")))
	o := execute(t, e)
	s.saw(1)
	there.saw(1)
	if o.Exit != 0 || o.Reply.Status != 200 || o.Reply.Written != 2 || flush(t, e, task.Succeeded) != "hello" {
		t.Errorf("got %+v, %+v, want exit 0, status 200 and 2 requests", o, o.Reply)
	}
	if !strings.HasPrefix(there.requests[0], "GET /path") || strings.Contains(there.requests[0], "a=b") {
		t.Errorf("got %q, want a GET without a body", there.requests)
	}
}

func TestExecuteLeavesARedirect(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 4\r\n\r\nbody"))
	o := execute(t, newSender(t, "GET", s.url("http"), nil))
	s.saw(1)
	if o.Exit != 0 || o.Reply.Status != 302 || o.Reply.Body != "body" || o.Reply.Default.Class != task.ClassSuccess {
		t.Errorf("got %+v, %+v, want the redirect as a success", o, o.Reply)
	}
}

func TestExecuteDecompresses(t *testing.T) {
	packed := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00"
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)
	for compressed, want := range map[bool]string{true: "hello", false: packed} {
		s := serve(t, replies("%s", reply))
		o := execute(t, newSender(t, "GET", s.url("http"), func(e *sender) { e.Network.Compressed = compressed }))
		s.saw(1)
		if o.Reply.Body != want || strings.Contains(s.requests[0], "Accept-Encoding: gzip") != compressed {
			t.Errorf("compressed %v: got %q after %q, want %q", compressed, o.Reply.Body, s.requests, want)
		}
	}
}

// A server may reply before it has read the request's body. That is its reply, not a broken connection.
func TestEarlyReply(t *testing.T) {
	s := serve(t, func(c *wire) {
		c.header(&bytes.Buffer{})
		c.send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nless")
		_, _ = io.Copy(io.Discard, c.reader)
	})
	o := execute(t, newSender(t, "POST", s.url("http"), func(e *sender) { e.setBody(data(strings.Repeat("x", 16<<20))) }))
	if o.Exit != 22 || o.Reply.Status != 413 || o.Reply.Body != "less" || describe(o.Reply.Default) != "stop" {
		t.Errorf("got %+v, %+v, want status 413 with its body", o, o.Reply)
	}
}

// After an upgrade the connection has another protocol. The attempt does not wait for its end.
func TestUpgrade(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
	o := execute(t, newSender(t, "GET", s.url("http"), nil))
	s.saw(1)
	if o.Exit != 0 || o.Reply.Status != 101 {
		t.Errorf("got %+v, %+v, want exit 0 and status 101", o, o.Reply)
	}
}

// A signal that asks to stop ends the attempt at once. Other signals are ignored.
func TestSignalEndsAnAttempt(t *testing.T) {
	signals := make(chan os.Signal)
	s := serve(t, func(c *wire) {
		c.request()
		signals <- syscall.SIGALRM
		signals <- syscall.SIGTERM
		c.stall()
	})
	e := newSender(t, "POST", s.url("http"), nil)
	o := e.Execute(t.Context(), e.task(), runner.Call{Number: 1, Signals: signals})
	s.saw(1)
	if o.Exit != 143 || o.Signal != "SIGTERM" || o.Stop != syscall.SIGTERM || !o.Reply.Default.Ambiguous {
		t.Errorf("got %+v, %+v, want exit 143, SIGTERM, ambiguous", o, o.Reply)
	}
}

func TestSignalStopsAFlush(t *testing.T) {
	s := serve(t, replies(okReply))
	e := newSender(t, "GET", s.url("http"), nil)
	execute(t, e)
	read, write := io.Pipe() // nobody reads
	e.Output.Stdout = write
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGALRM
	signals <- syscall.SIGINT
	tk := e.task()
	tk.Status = task.Succeeded
	sig, err := e.Flush(tk, signals)
	if sig != syscall.SIGINT || err != task.ErrStopped { //nolint:errorlint // it is returned as it is
		t.Errorf("got %v, %v, want %v, %v", sig, err, syscall.SIGINT, task.ErrStopped)
	}
	_ = read.Close()
}

// A cancelled attempt is not reported as a timeout.
func TestCancelledAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(c *wire) {
		c.request()
		cancel()
		c.stall()
	})
	e := newSender(t, "POST", s.url("http"), nil)
	o := e.Execute(ctx, e.task(), runner.Call{Number: 1})
	faulty{class: "reset", exit: 56, message: "wait for the reply: cancelled", wire: 1}.compare(t, o, "ambiguous")
}

// A status of 400 or more counts even if a signal ended the attempt while the body was read.
func TestSignalInTheBodyOfAnError(t *testing.T) {
	for status, want := range map[int]Event{429: "429", 500: "500", 200: EventCut} {
		a := &attempt{tracer: &tracer{}, reply: reply{status: status}}
		a.tracer.conn = a.tracer.wrap(nil)
		a.tracer.conn.startRequest()
		a.tracer.conn.wrote.Add(1)
		a.tracer.enter(stageBody)
		o, event := a.judge(&runner.StopError{Signal: syscall.SIGTERM})
		if event != want || o.Signal != "SIGTERM" {
			t.Errorf("%d: got event %q, %+v, want %q and SIGTERM", status, event, o, want)
		}
	}
}

// The methods and bodies are those of curl 7.88 after the same redirect.
func TestMethodAfterARedirect(t *testing.T) {
	body := &bodies{}
	body.add(data("data"))
	tests := []struct {
		method string
		given  bool
		body   *bodies
		status int
		want   string
		keeps  bool // the body
	}{
		{"POST", false, body, 301, "GET", false}, {"POST", false, body, 302, "GET", false},
		{"POST", false, body, 303, "GET", false},
		{"POST", false, body, 307, "POST", true}, {"POST", false, body, 308, "POST", true},
		{"POST", false, body, 300, "POST", true},
		{"POST", true, body, 302, "POST", false}, {"POST", true, body, 303, "POST", false},
		{"POST", true, body, 307, "POST", true},
		{"PUT", false, body, 302, "PUT", true}, {"PUT", false, body, 303, "GET", false},
		{"PUT", true, body, 301, "PUT", true}, {"PATCH", true, body, 302, "PATCH", true},
		{"PUT", true, body, 303, "GET", false},
		{"GET", false, nil, 302, "GET", false}, {"HEAD", false, nil, 302, "HEAD", false},
		{"HEAD", false, nil, 303, "HEAD", false},
		{"DELETE", true, nil, 302, "DELETE", false}, {"DELETE", true, nil, 303, "DELETE", false},
	}
	for _, tt := range tests {
		h := wireRequest{method: tt.method, url: parseURL("http://host/a/b"), body: tt.body,
			header: headers("Content-Type", "text/plain")}
		to, follows, err := h.redirect(tt.status, "../c", tt.given)
		if err != nil || !follows || to.url.String() != "http://host/c" {
			t.Fatalf("got %v, %v, %v, want http://host/c", to.url, follows, err)
		}
		if keeps := to.body != nil; to.method != tt.want || keeps != tt.keeps {
			t.Errorf("%s (given %v) after %d: got %s, body %v, want %s, %v",
				tt.method, tt.given, tt.status, to.method, keeps, tt.want, tt.keeps)
		}
		if tt.body != nil && (to.header.Get("Content-Type") != "") != tt.keeps {
			t.Errorf("%s after %d: got Content-Type %q, want it only with a body", tt.method, tt.status,
				to.header.Get("Content-Type"))
		}
	}
}

// Secrets for one server are not sent to another.
func TestRedirectKeepsSecrets(t *testing.T) {
	tests := map[string]bool{
		"/there": true, "http://host/": true, "http://HOST:80/": true,
		"http://other/": false, "https://host/": false, "http://host:8080/": false, "//other/": false,
	}
	names := []string{"Authorization", "authorization", "Proxy-Authorization", "COOKIE", "x-api-key", "Host",
		"Idempotency-Key", "X-Vault-Token"}
	for location, keeps := range tests {
		h := wireRequest{url: parseURL("http://host/"), header: http.Header{"X-Own": {"kept"}}, secret: []string{"x-vault-token"}}
		for _, name := range names {
			h.header[name] = []string{"secret"}
		}
		to, _, err := h.redirect(302, location, false)
		testkit.Must(t, err)
		for _, name := range names {
			if kept := to.header[name] != nil; kept != keeps {
				t.Errorf("%s: got %s sent: %v, want %v", location, name, kept, keeps)
			}
		}
		if to.header.Get("X-Own") == "" {
			t.Errorf("%s: got no X-Own, want it sent", location)
		}
	}
}

// Of a body, 301 and 302 drop the data of a POST; the file of -T is sent again, as by curl.
func TestRedirectKeepsAnUpload(t *testing.T) {
	for _, tt := range []struct {
		method          string
		upload          bool
		moved, seeOther bool // whether 301 and 302, and 303, drop the body
	}{
		{method: "POST", moved: true, seeOther: true},
		{method: "PUT", seeOther: true},
		{method: "PUT", upload: true, seeOther: true},
		{method: "POST", upload: true, seeOther: true},
	} {
		h := &wireRequest{method: tt.method, upload: tt.upload, body: &bodies{}}
		for status, want := range map[int]bool{301: tt.moved, 302: tt.moved, 303: tt.seeOther, 307: false, 308: false} {
			if got := h.becomesGet(status); got != want {
				t.Errorf("%+v, status %d: got that the body is dropped: %v, want %v", tt, status, got, want)
			}
		}
	}
}

// A header made of a reference stays with its server. A POST without its key is not safe to repeat at another server.
func TestRedirectToAnotherServer(t *testing.T) {
	other := serve(t, closes(""))
	s := serve(t, replies("HTTP/1.1 307 There\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", other.url("http")))
	c := newClient(t, s.url("http"), func(c *client) {
		r := request.Of(c.task)
		r.Method, r.Keyed, c.task.IdempotencyKey = "POST", true, "mine"
		r.Header = []string{"X-Vault-Token: {env:TOKEN}", "X-Own: kept"}
		c.Network.MaxRedirects = 5
		c.Lookup = func(name string) (string, bool) { return "hunter2", name == "TOKEN" }
	})
	if o := c.attempt(); describe(o.Reply.Default) != "ambiguous" {
		t.Errorf("got %+v, want a request that is not sent again", o.Reply.Default)
	}
	s.saw(1)
	other.saw(1)
	if first, second := s.requests[0], other.requests[0]; !strings.Contains(first, "hunter2") ||
		!strings.Contains(first, "mine") || strings.Contains(second, "hunter2") || strings.Contains(second, "mine") ||
		!strings.Contains(second, "kept") {
		t.Errorf("got %q, then %q, want token and key in the first alone", first, second)
	}
}

// A redirect to another server takes safety away and never gives any: the GET there does not make the POST safe to
// repeat. A key of the user's own holds at the server that had it.
func TestSafetyAfterARedirect(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		keyed        bool
		status       int
		want         string
	}{
		{"a POST that was moved", "POST", false, 301, "ambiguous"},
		{"a POST that was found", "POST", false, 302, "ambiguous"},
		{"a POST with a result", "POST", false, 303, "ambiguous"},
		{"a POST that is sent there", "POST", false, 307, "ambiguous"},
		{"a POST with a key and a result", "POST", true, 303, "retry"},
		{"a POST that is sent there without its key", "POST", true, 307, "ambiguous"},
		{"a POST that has moved there without its key", "POST", true, 308, "ambiguous"},
		{"a PUT", "PUT", false, 307, "retry"},
		{"a GET with a key", "GET", true, 302, "retry"},
	} {
		for end, second := range map[string]script{
			"500": replies(failedReply), "closed": closes(""), "SIGTERM": nil,
		} {
			t.Run(tt.name+"/"+end, func(t *testing.T) {
				signals := make(chan os.Signal, 1)
				if second == nil {
					second = func(c *wire) { c.request(); signals <- syscall.SIGTERM; c.stall() }
				}
				other := serve(t, second)
				s := serve(t, replies("HTTP/1.1 %d There\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
					tt.status, other.url("http")))
				c := newClient(t, s.url("http"), func(c *client) {
					r := request.Of(c.task)
					r.Method, r.Keyed, c.task.IdempotencyKey = tt.method, tt.keyed, "mine"
					c.Network.MaxRedirects = 5
				})
				o := c.Execute(t.Context(), c.task, runner.Call{Number: 1, Signals: signals})
				if got := describe(o.Reply.Default); got != tt.want {
					t.Errorf("got %s, want %s: %+v", got, tt.want, o)
				}
				s.saw(1)
				other.saw(1)
			})
		}
	}
}

func TestNoRedirect(t *testing.T) {
	h := wireRequest{method: "GET", url: parseURL("http://host/"), header: http.Header{}}
	for _, status := range []int{200, 204, 400, 503} {
		if _, follows, err := h.redirect(status, "/there", false); follows || err != nil {
			t.Errorf("%d: got a redirect, %v, want none", status, err)
		}
	}
	if _, follows, err := h.redirect(302, "", false); follows || err != nil {
		t.Errorf("no Location: got a redirect %v, %v, want none", follows, err)
	}
	for _, location := range []string{"ftp://host/", "http://", "http://[", "file:///etc/passwd", "http://host:99999/"} {
		if _, follows, err := h.redirect(302, location, false); follows || !errors.Is(err, errRedirects) {
			t.Errorf("%s: got %v, %v, want %v", location, follows, err, errRedirects)
		}
	}
}

func parseURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

// A meter reports ten times a second from the first transfer on, and once at the end.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []task.Transfer
		m := newMeter(func(now task.Transfer) { told = append(told, now) })
		time.Sleep(1050 * time.Millisecond)
		began := time.Now()
		sent := m.watched(io.NopCloser(strings.NewReader(strings.Repeat("x", 100))), task.Transfer{Sending: true})
		body := m.watched(io.NopCloser(strings.NewReader(strings.Repeat("x", 15))), task.Transfer{Total: 20, From: 5})
		_, _ = sent.Read(make([]byte, 1))
		_, _ = body.Read(make([]byte, 7))
		_, _ = io.ReadAll(sent) // of the request, late
		time.Sleep(200 * time.Millisecond)
		_, _ = body.Read(make([]byte, 8))
		m.end()
		time.Sleep(time.Second)
		half := task.Transfer{Bytes: 12, Total: 20, From: 5, Began: began}
		whole := task.Transfer{Bytes: 20, Total: 20, From: 5, Began: began, Over: true}
		if want := []task.Transfer{half, half, whole}; len(told) != 3 || told[0] != want[0] || told[1] != want[1] ||
			told[2] != want[2] {
			t.Errorf("got %+v\nwant %+v", told, want)
		}
	})
}

// The bytes of earlier attempts count.
func TestProgressOfADownload(t *testing.T) {
	var last task.Transfer
	s := serve(t, closes(begun(tagged)), closes(rest("bytes 5-11/12", tagged, ", world")))
	c := newClient(t, s.url("http"), func(c *client) { c.Progress = func(now task.Transfer) { last = now } })
	for _, want := range []task.Transfer{{Bytes: 5, Total: 12, Over: true}, {Bytes: 12, Total: 12, From: 5, Over: true}} {
		c.attempt()
		testkit.Must(t, c.flush(task.Pending))
		last.Began = time.Time{}
		if last != want {
			t.Errorf("got %+v, want %+v", last, want)
		}
	}
}

// The progress of an upload is reported while the server still reads.
func TestProgressOfAnUpload(t *testing.T) {
	const size = 32 << 20 // more than fits between the two
	sending := make(chan task.Transfer)
	s := serve(t, func(c *wire) {
		if now := <-sending; !now.Sending || now.Total != size || now.Bytes <= 0 || now.Bytes >= size {
			t.Errorf("got %+v, want a part of %d bytes", now, size)
		}
		go func() {
			for range sending {
			}
		}()
		c.request()
		c.send(okReply)
		c.stall()
	})
	c := newClient(t, s.url("http"), func(c *client) {
		c.Request.Method = "PUT"
		c.setBody(data(strings.Repeat("x", size)))
		c.Progress = func(now task.Transfer) { sending <- now }
	})
	if o := c.attempt(); o.Exit != 0 {
		t.Errorf("got %+v, want exit 0", o)
	}
	close(sending)
}

// TestRepeatedSecret has the server repeat secrets of the request.
func TestRepeatedSecret(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"PW": `p@w"d/secret`, "TOKEN": "token-secret"}[name]
		return value, ok
	}
	tests := map[string]struct {
		change func(r *request.Request)
		repeat string // what the server says
		want   string
	}{
		"-u, as it is sent": {func(r *request.Request) { r.User = "me:{env:PW}" }, "Basic bWU6cEB3ImQvc2VjcmV0!",
			"Basic ***!"},
		"-u, in JSON":  {func(r *request.Request) { r.User = "me:{env:PW}" }, `"p@w\"d/secret"`, `"{env:PW}"`},
		"-u, in a URL": {func(r *request.Request) { r.User = "me:{env:PW}" }, "p%40w%22d%2Fsecret", "{env:PW}"},
		"-u, typed":    {func(r *request.Request) { r.User = "me:typed" }, "typed bWU6dHlwZWQ=", "*** ***"},
		"a key alone":  {func(r *request.Request) { r.User = "sk_live_1234:" }, "no key sk_live_1234", "no key ***"},
		"a short name": {func(r *request.Request) { r.User = "name:" }, "no name", "no name"},
		"the URL": {func(r *request.Request) { r.URL = strings.Replace(r.URL, "://", "://me:{env:PW}@", 1) },
			"bWU6cEB3ImQvc2VjcmV0", "***"},
		"a typed header": {func(r *request.Request) { r.Header = []string{"authorization: Bearer typed"} },
			"typed is no token", "*** is no token"},
		"a mixed one": {func(r *request.Request) { r.Header = []string{"X-Api-Key: a-{env:TOKEN}"} }, "key a-token-secret",
			"key ***"},
		"cookies": {func(r *request.Request) { r.Header = []string{"Cookie: theme=dark; session=12345678"} },
			"dark 12345678", "dark ***"},
		"what is no secret": {func(r *request.Request) { r.Header = []string{"X-Other: typed"} }, "typed", "typed"},
		"one that is cut": {func(r *request.Request) { r.Header = []string{"X: {env:TOKEN}"} },
			"token-secret" + strings.Repeat("y", task.StoredTail-4), "KEN}" + strings.Repeat("y", task.StoredTail-4)},
		"one before the end that is kept": {func(r *request.Request) { r.Header = []string{"X: {env:TOKEN}"} },
			strings.Repeat("x", 3) + "token-secret" + strings.Repeat("y", task.StoredTail),
			strings.Repeat("y", task.StoredTail-1)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, replies("HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%s", len(tt.repeat), tt.repeat))
			c := newClient(t, s.url("http"), func(c *client) { c.task.Options.Capture, c.Lookup = task.CaptureStderr, lookup })
			tt.change(request.Of(c.task))
			got := c.attempt().Stdout
			if got != tt.want {
				t.Errorf("of %.60q the journal keeps %.60q, want %.60q", tt.repeat, got, tt.want)
			}
		})
	}
}

// Of what --mask matches, too, no end alone is kept.
func TestMaskedReplyThatIsCut(t *testing.T) {
	body := strings.Repeat("x", 2*task.StoredTail) + "key-1234567" + strings.Repeat("y", task.StoredTail-4)
	s := serve(t, replies("HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	c := newClient(t, s.url("http"), func(c *client) {
		c.task.Options.Capture, c.task.Options.Mask = task.CaptureStderr, "key-[0-9]+"
	})
	if got, want := c.attempt().Stdout, strings.Repeat("y", task.StoredTail-8); got != want {
		t.Errorf("the journal keeps %.20q… (%d bytes), want %d y", got, len(got), len(want))
	}
}

// What says how a body is packed, and is not understood, is an error: the marks of the transfer are no part of the body.
func TestBodyThatCannotBeUnpacked(t *testing.T) {
	for _, tt := range []struct {
		name, method, reply string
		compressed          bool
		want                int
	}{
		{name: "chunks in HTTP/1.0", want: exitReceive,
			reply: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{name: "another coding", reply: "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nhello",
			compressed: true, want: exitEncoding},
		{name: "none, of what would be packed", compressed: true,
			reply: "HTTP/1.1 204 Done\r\nContent-Encoding: gzip\r\n\r\n"},
		{name: "an empty one", compressed: true,
			reply: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"},
		{name: "that of HEAD", method: "HEAD", compressed: true,
			reply: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n"},
		{name: "no coding", compressed: true,
			reply: "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"},
		{name: "not asked for", reply: "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nhello"},
		{name: "HTTP/1.0", reply: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
	} {
		s := serve(t, replies("%s", tt.reply))
		compressed := func(e *sender) { e.Network.Compressed = tt.compressed }
		e := newSender(t, cmp.Or(tt.method, "GET"), s.url("http"), compressed)
		o := execute(t, e)
		s.saw(1)
		if o.Exit != tt.want {
			t.Errorf("%s: got %+v, want exit %d", tt.name, o, tt.want)
		}
	}
}
