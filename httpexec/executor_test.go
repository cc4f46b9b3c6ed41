package httpexec

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
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

// sending returns one for a request.
func sending(t *testing.T, method, url string, change func(*sender)) *sender {
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

// task is what the executor is given.
func (e *sender) task() *task.Task {
	return &task.Task{Kind: request.Kind, Target: e.Request, IdempotencyKey: e.key}
}

// carry makes a body that of the request.
func (e *sender) carry(body Body) {
	e.Stdin, e.Request.Body = body, []request.Part{{File: request.StdinFile}}
}

// execute runs one attempt.
func execute(t *testing.T, e *sender) task.Outcome {
	t.Helper()
	return e.Execute(t.Context(), e.task(), runner.Call{Number: 1})
}

// release returns what reaches stdout of the attempt that was executed last, given what the task came to.
func release(t *testing.T, e *sender, status task.Status) string {
	t.Helper()
	var out bytes.Buffer
	e.Output.Stdout = &out
	sig, err := e.Flush(&task.Task{Status: status}, nil)
	if sig != nil || err != nil {
		t.Errorf("release: %v, %v", sig, err)
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
		{"POST", "POST", func(e *sender) { e.carry(data("a=b")) }, okReply,
			"POST /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nContent-Length: 3\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\na=b", "hello"},
		{"POST of nothing", "POST", func(e *sender) { e.carry(data("")) }, okReply,
			"POST /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nContent-Length: 0\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n", "hello"},
		{"a host of its own", "GET", func(e *sender) { e.Request.Header = []string{"Host: virtual"} }, okReply,
			"GET /path?q=1 HTTP/1.1\r\nHost: virtual\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n", "hello"},
		{"the URL's user", "GET", func(e *sender) { e.Request.URL = strings.Replace(e.Request.URL, "://", "://me:secret@", 1) }, okReply,
			"GET /path?q=1 HTTP/1.1\r\nHost: HOST\r\nUser-Agent: test\r\nAccept: */*\r\nAuthorization: Basic bWU6c2VjcmV0\r\n\r\n", "hello"},
		{"a reply in chunks", "GET", nil, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
			get, "hello"},
		{"an interim reply", "GET", nil, "HTTP/1.1 103 Early Hints\r\n\r\n" + okReply, get, "hello"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, replies("%s", tt.reply))
			e := sending(t, tt.method, s.url("http"), tt.change)
			o := execute(t, e)
			s.saw(1)
			if o.Exit != 0 || o.Error != task.ErrorNone || o.Reply.Status != 200 || o.Reply.Written != 1 || o.Reply.Body != tt.body {
				t.Errorf("%+v, %+v", o, o.Reply)
			}
			if want := strings.Replace(tt.request, "HOST", s.address(), 1); s.requests[0] != want {
				t.Errorf("on the wire %q\nwant %q", s.requests[0], want)
			}
			if got := release(t, e, task.Succeeded); got != tt.body {
				t.Errorf("on stdout %q", got)
			}
		})
	}
}

// A body goes to a server that closes after its reply in the same way.
func TestExecuteUntilTheConnectionCloses(t *testing.T) {
	s := serve(t, closes("HTTP/1.0 200 OK\r\n\r\nhello"))
	e := sending(t, "GET", s.url("http"), nil)
	if o := execute(t, e); o.Exit != 0 || o.Reply.Body != "hello" {
		t.Errorf("%+v", o)
	}
	s.saw(1)
}

// Every attempt reads the body from its start, and each is one request on a connection of its own.
func TestEachAttemptSendsTheSame(t *testing.T) {
	kept := spool.New(10, func() (*os.File, error) { return spool.Temporary(t.TempDir()) })
	text := strings.Repeat("0123456789", 100_000)
	_, err := io.WriteString(kept, text)
	ok(t, err)
	s := serve(t, replies("HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: 7\r\n\r\n"), closes(""), replies(okReply))
	e := sending(t, "POST", s.url("http"), func(e *sender) { e.carry(kept) })
	var exits []int
	for range 3 {
		o := execute(t, e)
		exits = append(exits, o.Exit)
		if o.Reply.Written != 1 {
			t.Errorf("%d requests written", o.Reply.Written)
		}
		release(t, e, task.Pending)
	}
	s.saw(3)
	if fmt.Sprint(exits) != "[22 52 0]" {
		t.Errorf("exits %v", exits)
	}
	for i, request := range s.requests {
		if !strings.HasSuffix(request, "\r\n\r\n"+text) || request != s.requests[0] {
			t.Errorf("request %d differs: %d bytes", i+1, len(request))
		}
	}
}

func TestExchange(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 503 No\r\nContent-Length: 4\r\nRetry-After: 7\r\nX-A: 1\r\nx-a: 2\r\n\r\nbusy"))
	o := execute(t, sending(t, "POST", s.url("http"), nil))
	s.saw(1)
	x := o.Reply
	if o.Exit != 22 || o.Message != "status 503 Service Unavailable" || x.Status != 503 || x.Body != "busy" || x.ServerDelay != 7*time.Second {
		t.Errorf("%+v, %+v", o, x)
	}
	if x.Header["X-A"] != "1, 2" || x.Default != (task.Eligibility{Class: task.ClassRetryable, Event: "503"}) {
		t.Errorf("%+v", x)
	}
	if p := x.Phases; p.Connect <= 0 || p.FirstByte <= 0 || p.Total < p.Connect+p.FirstByte || p.TLS != 0 || p.Total != o.Duration {
		t.Errorf("phases %+v", p)
	}
}

// Only the last attempt's body is shown, and only a whole one.
func TestRelease(t *testing.T) {
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
			e := sending(t, "GET", s.url("http"), nil)
			execute(t, e)
			if got := release(t, e, tt.status); got != tt.want {
				t.Errorf("on stdout %q, want %q", got, tt.want)
			}
		})
	}
}

// A large reply goes through a file; of its text only the end is looked at.
func TestLargeReply(t *testing.T) {
	text := strings.Repeat("x", 3<<20) + "end"
	s := serve(t, replies("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
	e := sending(t, "GET", s.url("http"), nil)
	o := execute(t, e)
	if len(o.Reply.Body) != task.ConditionTail || !strings.HasSuffix(o.Reply.Body, "xend") {
		t.Errorf("%d bytes are looked at", len(o.Reply.Body))
	}
	if got := release(t, e, task.Succeeded); got != text {
		t.Errorf("%d bytes on stdout, want %d", len(got), len(text))
	}
}

func TestExecuteFollowsRedirects(t *testing.T) {
	there := serve(t, replies(okReply))
	s := serve(t, replies("HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 4\r\n\r\nbody", there.url("http")))
	e := sending(t, "POST", s.url("http"), following(5, data("a=b")))
	o := execute(t, e)
	s.saw(1)
	there.saw(1)
	if o.Exit != 0 || o.Reply.Status != 200 || o.Reply.Written != 2 || release(t, e, task.Succeeded) != "hello" {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
	if !strings.HasPrefix(there.requests[0], "GET /path") || strings.Contains(there.requests[0], "a=b") {
		t.Errorf("redirected to %q", there.requests)
	}
}

func TestExecuteLeavesARedirect(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 4\r\n\r\nbody"))
	o := execute(t, sending(t, "GET", s.url("http"), nil))
	s.saw(1)
	if o.Exit != 0 || o.Reply.Status != 302 || o.Reply.Body != "body" || o.Reply.Default.Class != task.ClassSuccess {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}

func TestExecuteUnpacks(t *testing.T) {
	packed := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00"
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)
	for compressed, want := range map[bool]string{true: "hello", false: packed} {
		s := serve(t, replies("%s", reply))
		o := execute(t, sending(t, "GET", s.url("http"), func(e *sender) { e.Network.Compressed = compressed }))
		s.saw(1)
		if o.Reply.Body != want || strings.Contains(s.requests[0], "Accept-Encoding: gzip") != compressed {
			t.Errorf("compressed %v: %q after %q", compressed, o.Reply.Body, s.requests)
		}
	}
}

// A server may refuse a body before it has read it. That is its reply, and not a broken connection.
func TestEarlyReply(t *testing.T) {
	s := serve(t, func(c *wire) {
		c.header(&bytes.Buffer{})
		c.send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nless")
		_, _ = io.Copy(io.Discard, c.reader)
	})
	o := execute(t, sending(t, "POST", s.url("http"), func(e *sender) { e.carry(data(strings.Repeat("x", 16<<20))) }))
	if o.Exit != 22 || o.Reply.Status != 413 || o.Reply.Body != "less" || describe(o.Reply.Default) != "stop" {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}

// What follows an upgrade is another protocol, and nobody waits for its end.
func TestUpgrade(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
	o := execute(t, sending(t, "GET", s.url("http"), nil))
	s.saw(1)
	if o.Exit != 0 || o.Reply.Status != 101 {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}
