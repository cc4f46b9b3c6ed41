package httpexec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// posting sends a file.
func posting(t *testing.T, s *server, content string) (e *sender, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, []byte(content), 0o600))
	e = sending(t, "POST", s.url("http"), func(e *sender) { e.Request.Body = []request.Part{{File: file}} })
	ok(t, Stamp(e.Request))
	return e, file
}

// A file that is another by now is not what the task was about.
func TestFileChangedBetweenAttempts(t *testing.T) {
	changes := map[string]func(file string) error{
		"another text":   func(file string) error { return os.WriteFile(file, []byte("others"), 0o600) },
		"touched":        func(file string) error { return os.Chtimes(file, time.Now(), time.Unix(1, 0)) },
		"no longer here": os.Remove,
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := serve(t, replies("HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: 7\r\n\r\n"))
			e, file := posting(t, s, "text")
			execute(t, e)
			ok(t, change(file))
			o := execute(t, e)
			s.saw(1)
			faulty{class: "local", exit: 26, message: "read the request's body: "}.compare(t, o, "stop")
		})
	}
}

// One that changes while it is sent does not get to the server whole.
func TestFileChangedWhileItIsSent(t *testing.T) {
	const size = 32 << 20 // more than the connection holds
	var file string
	s := serve(t, func(c *wire) {
		c.header(&bytes.Buffer{})
		ok(c.server, os.Chtimes(file, time.Now(), time.Unix(1, 0)))
		if n, _ := io.Copy(io.Discard, c.reader); n >= size {
			c.server.Errorf("%d bytes came", n)
		}
	})
	e, path := posting(t, s, strings.Repeat("x", size))
	file = path
	o := execute(t, e)
	if o.Error != task.ErrorLocal || !strings.Contains(o.Message, "has changed since the task was made") || o.Reply.Default.Class != task.ClassFatal {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}

// What a reference stands for gets to the server, and nowhere else.
func TestReferencesAreResolvedAtEachSend(t *testing.T) {
	s := serve(t, closes(""), closes(""))
	e := sending(t, "GET", strings.Replace(s.url("http"), "path", "{env:TOKEN}", 1), func(e *sender) {
		e.Request.Header, e.Request.User = lines("X-A: {env:TOKEN}"), "me:{env:TOKEN}"
	})
	for _, token := range []string{"first", "second"} {
		e.Lookup = func(name string) (string, bool) { return token, name == "TOKEN" }
		execute(t, e)
	}
	s.saw(2)
	for i, token := range []string{"first", "second"} {
		if r := s.requests[i]; !strings.HasPrefix(r, "GET /"+token+"?") || !strings.Contains(r, "X-A: "+token+"\r\n") {
			t.Errorf("attempt %d: %q", i+1, r)
		}
	}
	if !strings.Contains(e.Request.URL, "{env:TOKEN}") || e.Request.Header[0] != "X-A: {env:TOKEN}" {
		t.Errorf("the task has changed: %+v", e.Request)
	}
}

// The bodies of requests are data.
func TestReferencesAreNotResolvedInBodies(t *testing.T) {
	s := serve(t, replies(okReply))
	e := sending(t, "POST", s.url("http"), func(e *sender) { e.Request.Body, e.Lookup = aPart("{env:TOKEN}"), variables })
	execute(t, e)
	s.saw(1)
	if !strings.HasSuffix(s.requests[0], "\r\n\r\n{env:TOKEN}") {
		t.Errorf("%q", s.requests)
	}
}

func TestMessagesWithoutSecrets(t *testing.T) {
	const value = "s3cret.example"
	e := sending(t, "GET", "", func(e *sender) {
		e.Lookup = func(name string) (string, bool) { return value, name == "X" }
		e.resolver = names(3)
	})
	for _, url := range []string{"http://{env:X}/", "http://host:{env:X}/", "{env:X}://host/", "http://[{env:X}/", "http://{env:X}:99999/"} {
		e.Request.URL = url
		o := execute(t, e)
		if o.Exit == 0 || o.Message == "" || strings.Contains(o.Message, value) {
			t.Errorf("%s: %q", url, o.Message)
		}
		if err := Check(e.Request, e.Lookup); err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A variable that is not set is a fault of this machine: nothing is sent, and nothing is tried again.
func TestVariableThatIsNotSet(t *testing.T) {
	s := serve(t)
	o := execute(t, sending(t, "GET", s.url("http"), func(e *sender) { e.Request.Header = lines("Authorization: Bearer {env:NONE}") }))
	s.saw(0)
	faulty{class: "local", exit: 125, message: "the variable NONE is not set; set it"}.compare(t, o, "stop")
}

// What a resume needs is kept before the first request is sent, and once.
func TestKeep(t *testing.T) {
	s := serve(t, closes(""), closes(""))
	kept := 0
	e := sending(t, "POST", s.url("http"), func(e *sender) {
		e.carry(data("a=b"))
		e.Keep = func(tk *task.Task) error {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if kept++; s.accepted > 0 || tk.Target != e.Request {
				t.Errorf("kept after %d connections: %+v", s.accepted, tk)
			}
			return nil
		}
	})
	execute(t, e)
	execute(t, e)
	s.saw(2)
	if kept != 1 {
		t.Errorf("kept %d times", kept)
	}
	e.kept, e.Keep = false, func(*task.Task) error { return errors.New("no room") }
	faulty{class: "local", exit: 125, message: "keep the request's body: no room"}.compare(t, execute(t, e), "stop")
}

// HTTP/1.1 has no other way to say how long a body is.
func TestContentLength(t *testing.T) {
	tests := []struct {
		header string
		body   []request.Part
		want   string // empty: refused
	}{
		{"Content-Length: 0", nil, "Content-Length: 0\r\n"}, {"content-length: 3", aPart("a=b"), "Content-Length: 3\r\n"},
		{"Content-Length: 9", aPart("a=b"), ""}, {"Content-Length: 3", nil, ""},
	}
	for _, tt := range tests {
		s := serve(t, replies(okReply))
		e := sending(t, "POST", s.url("http"), func(e *sender) { e.Request.Header, e.Request.Body = lines(tt.header), tt.body })
		o := execute(t, e)
		s.stop()
		if tt.want == "" {
			faulty{class: "url", exit: 3, message: "Content-Length says"}.compare(t, o, "stop")
		} else if len(s.requests) != 1 || !strings.Contains(s.requests[0], "\r\n"+tt.want) || strings.Count(s.requests[0], "ength") != 1 {
			t.Errorf("%s: %+v, %q", tt.header, o, s.requests)
		}
	}
}

func TestQuery(t *testing.T) {
	for text, says := range map[string]string{"a b": "--data-urlencode", "a\n": "--data-urlencode", strings.Repeat("x", 2<<20): "1 MiB"} {
		e := sending(t, "GET", "http://host/", func(e *sender) { e.Request.Get, e.Request.Body = true, aPart(text) })
		faulty{class: "url", exit: 3, message: says}.compare(t, execute(t, e), "stop")
	}
}

func TestPatience(t *testing.T) {
	s := serve(t, closes(""))
	o := execute(t, sending(t, "GET", s.url("http"), func(e *sender) { e.Request.MaxRetryAfter = time.Minute }))
	if o.Reply.MaxDelay != time.Minute {
		t.Errorf("%+v", o.Reply)
	}
}

func TestTaskWithoutARequest(t *testing.T) {
	o := (&Executor{}).Execute(t.Context(), &task.Task{}, runner.Call{})
	faulty{class: "local", exit: 125, message: "read the request"}.compare(t, o, "stop")
}

// A length in chunks is not told twice, however its header is written.
func TestChunks(t *testing.T) {
	s := serve(t, replies(okReply))
	e := sending(t, "POST", s.url("http"), func(e *sender) {
		e.Request.Header, e.Request.Body = lines("transfer-encoding: Chunked"), aPart("a=b")
	})
	execute(t, e)
	s.saw(1)
	if r := s.requests[0]; strings.Count(strings.ToLower(r), "transfer-encoding") != 1 || !strings.HasSuffix(r, "\r\n\r\n3\r\na=b\r\n0\r\n\r\n") {
		t.Errorf("%q", r)
	}
}

// Who asks for an encoding gets it.
func TestEncodingOfOnesOwn(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\npacked"))
	e := sending(t, "GET", s.url("http"), func(e *sender) {
		e.Network.Compressed, e.Request.Header = true, lines("accept-encoding: gzip")
	})
	o := execute(t, e)
	s.saw(1)
	if o.Reply.Body != "packed" || strings.Count(strings.ToLower(s.requests[0]), "accept-encoding") != 1 {
		t.Errorf("%+v, %q", o.Reply, s.requests)
	}
}

// HTTP/2 has no upgrade, so a request for one does not offer it.
func TestUpgradeOverTLS(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil, "h2", "http/1.1"), replies("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
	o := execute(t, sending(t, "GET", s.url("https"), func(e *sender) {
		e.Network.CACert, e.Request.Header = a.file, lines("Connection: Upgrade", "Upgrade: other")
	}))
	s.saw(1)
	if o.Reply.Status != 101 {
		t.Errorf("%+v", o)
	}
}
