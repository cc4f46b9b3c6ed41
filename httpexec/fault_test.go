package httpexec

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// faulty is one fault: what the server does, what becomes of the attempt for requests that are idempotent and for others, and how many
// requests get to the server.
type faulty struct {
	name    string
	script  script
	change  func(*sender)
	class   task.ErrorClass
	exit    int
	message string
	i, n    string // as in TestDefault
	wire    int
	until   stage // what server.reached stands for
}

// check runs the fault for a GET and a POST with a body against a server of its own.
func (f faulty) check(t *testing.T, scheme string, config *tls.Config) {
	for method, want := range map[string]string{"GET": f.i, "POST": f.n} {
		t.Run(f.name+"/"+method, func(t *testing.T) {
			var s *server
			if config == nil {
				s = serve(t, f.script)
			} else {
				s = serveTLS(t, config, f.script)
			}
			e := sending(t, method, s.url(scheme), f.change)
			if method == "POST" {
				e.carry(data("a=b"))
			}
			o := e.Execute(f.context(t, s, e), e.task(), runner.Call{Number: 1})
			s.saw(f.wire)
			f.compare(t, o, want)
			if s.accepted > 1 {
				t.Errorf("%d connections", s.accepted)
			}
		})
	}
}

// orAmbiguous fills in what most faults after the request have in common.
func (f faulty) orAmbiguous() faulty {
	if f.i == "" {
		f.i, f.n = "retry", "ambiguous"
	}
	f.wire = 1
	return f
}

// context returns one that a timeout ends when the script says so, and has the script told how far the client is: it has the first byte of
// the reply, or so much of the body that it goes into a file.
func (f faulty) context(t *testing.T, s *server, e *sender) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	s.timeUp = func() { cancel(connectTimeout(5 * time.Second)) }
	switch f.until {
	case stageHeader:
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { close(s.reached) }})
	case stageBody:
		file := e.Temporary
		e.Temporary = func() (*os.File, error) {
			close(s.reached)
			return file()
		}
	}
	return ctx
}

func (f faulty) compare(t *testing.T, o task.Outcome, follows string) {
	t.Helper()
	if o.Error != f.class || o.Exit != f.exit || !strings.Contains(o.Message, f.message) || f.message == "" {
		t.Errorf("%q, exit %d, %q; want %q, exit %d, %q", o.Error, o.Exit, o.Message, f.class, f.exit, f.message)
	}
	if strings.Contains(o.Message, "\n") {
		t.Errorf("more than a line: %q", o.Message)
	}
	if got := describe(o.Reply.Default); got != follows {
		t.Errorf("%s (%+v), want %s", got, o.Reply.Default, follows)
	}
	if o.Reply.Written != f.wire {
		t.Errorf("%d requests are said to be written, want %d", o.Reply.Written, f.wire)
	}
}

// largeCut is the beginning of a body that is larger than what is kept in memory.
var largeCut = "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + strings.Repeat("x", 2<<20)

func TestFaultsAfterTheRequest(t *testing.T) {
	const (
		lost  = "wait for the reply: the connection was closed"
		reset = "connection reset by peer"
		late  = "timed out after 5s"
	)
	for _, f := range []faulty{
		{name: "closed without a byte", script: closes(""), class: "reset", exit: 52, message: lost},
		{name: "reset", script: resets(""), class: "reset", exit: 56, message: reset},
		{name: "no reply in time", script: stalls(""), class: "timeout", exit: 28, message: "wait for the reply: " + late},

		{name: "header cut", script: closes(cutHeader),
			class: "reset", exit: 56, message: "read the reply's header: the connection was closed"},
		{name: "status line cut", script: closes("HTTP/1.1 2"),
			class: "reset", exit: 56, message: "read the reply's header: the connection was closed"},
		{name: "header reset", script: resets(cutHeader), until: stageHeader, class: "reset", exit: 56, message: "header: " + reset},
		{name: "header late", script: stalls(cutHeader), until: stageHeader,
			class: "timeout", exit: 28, message: "read the reply's header: " + late},

		{name: "body cut", script: closes(cutReply), class: "truncated", exit: 18, message: "read the reply: the connection was closed"},
		{name: "chunks cut", script: closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
			class: "truncated", exit: 18, message: "read the reply: "},
		{name: "last chunk missing", script: closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
			class: "truncated", exit: 18, message: "read the reply: "},
		{name: "chunks that are none", script: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
			class: "truncated", exit: 56, message: "read the reply: "},
		{name: "body reset", script: resets(largeCut), until: stageBody, class: "truncated", exit: 56, message: "read the reply: " + reset},
		{name: "body late", script: stalls(largeCut), until: stageBody, class: "timeout", exit: 28, message: "read the reply: " + late},
		{name: "error's body cut", script: closes("HTTP/1.1 429 Slow\r\nContent-Length: 50\r\n\r\nhello"),
			exit: 22, message: "status 429 Too Many Requests, and its body was cut", i: "retry", n: "retry"},

		{name: "garbage", script: replies("SSH-2.0-OpenSSH_9.2\r\n"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "garbage in the header", script: replies("HTTP/1.1 200 OK\r\nno header\r\n\r\n"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "two lengths", script: replies("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "a status that is none", script: replies("HTTP/1.1 abc\r\n\r\n"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "a status that nobody has", script: closes("HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"),
			class: "protocol", exit: 8, message: "read the reply's header: the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "a header without end", script: closes("HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", mostHeader/6) + "\r\n"),
			class: "protocol", exit: 56, message: "read the reply's header: it has no end within 300 KiB", i: "retry 2", n: "ambiguous"},
		{name: "speaks first", script: func(c *wire) {
			c.send("220 mail.example ESMTP\r\n")
			c.request()
			c.stall()
		}, class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
	} {
		f.orAmbiguous().check(t, "http", nil)
	}
}

func TestFaultsOfHTTP2(t *testing.T) {
	config := newAuthority(t).server(nil, "h2")
	answer := func(do func(c *wire, stream uint32)) script {
		return http2(func(c *wire, stream uint32) bool {
			do(c, stream)
			return false
		})
	}
	for _, f := range []faulty{
		{name: "stream refused", script: answer(func(c *wire, s uint32) { c.resetStream(s, codeRefusedStream) }),
			class: "reset", exit: 92, message: "wait for the reply: the server refused the request unseen", i: "retry", n: "retry"},
		{name: "stream reset", script: answer(func(c *wire, s uint32) { c.resetStream(s, codeInternal) }),
			class: "reset", exit: 92, message: "wait for the reply: HTTP/2 stream reset with code 2"},
		{name: "GOAWAY before the stream", script: answer(func(c *wire, s uint32) { c.goAway(0, codeNone) }),
			class: "reset", exit: 16, message: "GOAWAY"},
		{name: "GOAWAY with an error", script: answer(func(c *wire, s uint32) { c.goAway(0, codeEnhanceCalm) }),
			class: "reset", exit: 16, message: "GOAWAY"},
		{name: "GOAWAY after the stream, and closed", script: http2(func(c *wire, s uint32) bool {
			c.goAway(s, codeNone)
			return true
		}), class: "reset", exit: 16, message: "GOAWAY"},
		{name: "closed", script: http2(func(*wire, uint32) bool { return true }),
			class: "reset", exit: 52, message: "wait for the reply: the connection was closed"},
		{name: "reset", script: http2(func(c *wire, _ uint32) bool {
			c.reset()
			return true
		}), class: "reset", exit: 56, message: "wait for the reply: connection reset by peer"},
		{name: "no reply in time", script: answer(func(c *wire, _ uint32) { c.server.timeUp() }),
			class: "timeout", exit: 28, message: "wait for the reply: timed out after 5s"},
		{name: "body reset", script: answer(func(c *wire, s uint32) {
			c.frame(frameHeaders, flagEndHeaders, s, status200)
			c.frame(frameData, 0, s, "hel")
			c.resetStream(s, codeInternal)
		}), class: "truncated", exit: 92, message: "read the reply: HTTP/2 stream reset with code 2"},
		{name: "body cut", script: http2(func(c *wire, s uint32) bool {
			c.frame(frameHeaders, flagEndHeaders, s, status200)
			c.frame(frameData, 0, s, "hel")
			return true
		}), class: "truncated", exit: 18, message: "read the reply: the connection was closed"},
		{name: "garbage", script: answer(func(c *wire, _ uint32) { c.send("HTTP/1.1 400 Bad Request\r\n\r\n") }),
			class: "reset", exit: 16, message: "wait for the reply: http2: "},
	} {
		f.change = func(e *sender) { e.Network.Insecure = true }
		f.orAmbiguous().check(t, "https", config)
	}
}
