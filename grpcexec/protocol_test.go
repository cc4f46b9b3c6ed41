package grpcexec

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/10f93571/retry/task"
)

// serveHTTP2 starts a server that is no library of gRPC, and returns the task of an encoded call to it.
func serveHTTP2(t testing.TB, handler http.HandlerFunc) *task.Task {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return rawTask(t, server.Listener.Addr().String())
}

// rawTask returns a task of an encoded call that is not safe to repeat.
func rawTask(t testing.TB, address string) *task.Task {
	t.Helper()
	call, err := New("grpc://"+address+"/a.B/C", nil, []byte("hello"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return taskOf(call)
}

func frame(flag byte, message string) string {
	head := binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message)))
	return string(head) + message
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReplies(t *testing.T) {
	const grpc = "application/grpc"
	ok := map[string]string{"Grpc-Status": "0"}
	for name, tt := range map[string]struct {
		http      int
		kind      string
		header    map[string]string
		body      string
		trailer   map[string]string
		status    string // the name; empty where there is none
		message   string // a part of it
		reply     string
		retried   bool
		ambiguous bool
	}{
		"a message":     {kind: grpc, body: frame(0, "hi"), trailer: ok, status: "OK", reply: "hi"},
		"proto":         {kind: grpc + "+proto", body: frame(0, "hi"), trailer: ok, status: "OK", reply: "hi"},
		"empty":         {kind: grpc, body: frame(0, ""), trailer: ok, status: "OK"},
		"gzip":          {kind: grpc, header: map[string]string{"Grpc-Encoding": "gzip"}, body: frame(1, zipped(t, "hi")), trailer: ok, status: "OK", reply: "hi"},
		"bad gzip":      {kind: grpc, header: map[string]string{"Grpc-Encoding": "gzip"}, body: frame(1, "hi"), trailer: ok, status: "INTERNAL", message: "gzip: unexpected EOF", ambiguous: true},
		"snappy":        {kind: grpc, header: map[string]string{"Grpc-Encoding": "snappy"}, body: frame(1, "hi"), trailer: ok, status: "INTERNAL", message: `compressed as "snappy"`, ambiguous: true},
		"trailers only": {kind: grpc, header: map[string]string{"Grpc-Status": "14", "Grpc-Message": "%c3%a4 50%"}, status: "UNAVAILABLE", message: "UNAVAILABLE: ä 50%", retried: true},
		"ok alone":      {kind: grpc, header: ok, status: "INTERNAL", message: "has 0 messages", ambiguous: true},
		"two statuses": {kind: grpc, header: ok, body: frame(0, "hi"), trailer: map[string]string{"Grpc-Status": "14"}, status: "UNAVAILABLE",
			message: "UNAVAILABLE", retried: true},
		"ok, no status": {kind: grpc, header: ok, body: frame(0, "hi"), status: "UNKNOWN", message: "ended without a status", ambiguous: true},
		"two messages":  {kind: grpc, body: frame(0, "hi") + frame(0, "ho"), trailer: ok, status: "INTERNAL", message: "has 2 messages", ambiguous: true},
		"no message":    {kind: grpc, trailer: ok, status: "INTERNAL", message: "has 0 messages", ambiguous: true},
		"no status":     {kind: grpc, body: frame(0, "hi"), status: "UNKNOWN", message: "ended without a status", ambiguous: true},
		"bad status":    {kind: grpc, body: frame(0, "hi"), trailer: map[string]string{"Grpc-Status": "x"}, status: "UNKNOWN", message: "status x", ambiguous: true},
		"half a frame":  {kind: grpc, body: frame(0, "hi")[:6], trailer: ok, message: "the connection was closed", ambiguous: true},
		"announced":     {kind: grpc, body: "\x00\xff\xff\xff\xff", trailer: ok, message: "the reply is too large: it has 4 GiB", ambiguous: true},
		"a bomb":        {kind: grpc, header: map[string]string{"Grpc-Encoding": "gzip"}, body: frame(1, zipped(t, strings.Repeat("x", MaxMessage+1))), trailer: ok, message: "unpacked it has more than 4 MiB", ambiguous: true},
		"400":           {http: 400, status: "INTERNAL", message: "HTTP status 400 Bad Request"}, "401": {http: 401, status: "UNAUTHENTICATED"},
		"403": {http: 403, status: "PERMISSION_DENIED"}, "404": {http: 404, status: "UNIMPLEMENTED"},
		"429": {http: 429, status: "UNAVAILABLE", retried: true}, "500": {http: 500, status: "UNKNOWN", ambiguous: true},
		"502": {http: 502, status: "UNAVAILABLE", ambiguous: true}, "503": {http: 503, status: "UNAVAILABLE", ambiguous: true},
		"504": {http: 504, status: "UNAVAILABLE", ambiguous: true}, "302": {http: 302, status: "UNKNOWN"},
		"503 with code": {http: 503, header: map[string]string{"Grpc-Status": "14"}, status: "UNAVAILABLE", retried: true},
		"a page":        {kind: "text/html", body: "<p>hi", status: "UNKNOWN", message: "HTTP status 200 OK with text/html"},
	} {
		t.Run(name, func(t *testing.T) {
			tk := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
				if sent, err := io.ReadAll(r.Body); string(sent) != frame(0, "hello") || err != nil || r.Header.Get("Te") != "trailers" {
					t.Errorf("got body %q, %v, header %v", sent, err, r.Header)
				}
				if tt.kind != "" {
					w.Header().Set("Content-Type", tt.kind)
				}
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(max(tt.http, http.StatusOK))
				_, _ = io.WriteString(w, tt.body)
				for name, value := range tt.trailer {
					w.Header().Set(http.TrailerPrefix+name, value)
				}
			})
			var out bytes.Buffer
			e := &Executor{Stdout: &out}
			o := attemptOf(t, e, tk)
			tk.Status = task.Succeeded
			if _, err := e.Flush(tk, nil); err != nil {
				t.Fatal(err)
			}
			if o.Reply.StatusName != tt.status || !strings.Contains(o.Message, tt.message) || out.String() != tt.reply {
				t.Errorf("got status %q, %q, reply %q, want %q, %q, %q", o.Reply.StatusName, o.Message, out.String(), tt.status,
					tt.message, tt.reply)
			}
			ours := strings.Contains(tt.message, "without a status") ||
				tt.http == 0 && tt.kind == grpc && tt.status == "INTERNAL"
			if o.Reply.Cut != ours { // no status that the server has sent: conditions on it do not count
				t.Errorf("got cut %v, want %v", o.Reply.Cut, ours)
			}
			got := o.Reply.Default
			if tt.status != "OK" && (got.Ambiguous != tt.ambiguous || (got.Class == task.ClassRetryable) != tt.retried) {
				t.Errorf("got %+v, want retried %v, ambiguous %v", got, tt.retried, tt.ambiguous)
			}
		})
	}
}

func TestLargeMetadata(t *testing.T) {
	tk := serveHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("X-Large", strings.Repeat("x", 400<<10))
		_, _ = io.WriteString(w, frame(0, "hi"))
	})
	o := attemptOf(t, &Executor{}, tk)
	if o.Exit == 0 || !o.Reply.Default.Ambiguous {
		t.Errorf("got %+v, %+v, want a reply that is not taken", o, o.Reply)
	}
}

// The server of an HTTP/1 port, a port of another protocol, and one that closes at once.
func TestNotHTTP2(t *testing.T) {
	one := httptest.NewServer(http.NotFoundHandler())
	defer one.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler()) // offers HTTP/1.1 alone
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closes.Close() }()
	go func() {
		for c, err := closes.Accept(); err == nil; c, err = closes.Accept() {
			_ = c.Close()
		}
	}()
	for _, address := range []string{one.Listener.Addr().String(), closes.Addr().String()} {
		o := attemptOf(t, &Executor{}, rawTask(t, address))
		if o.Exit != 78 || o.Error != task.ErrorReset {
			t.Errorf("got %+v, %+v, want a reset", o, o.Reply)
		}
	}
	call, err := New("grpcs://"+tls.Listener.Addr().String()+"/a.B/C", nil, []byte{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call.Network.Insecure = true
	o := attemptOf(t, &Executor{}, taskOf(call))
	if o.Error != task.ErrorTLS || !strings.Contains(o.Message, "no application protocol") ||
		o.Reply.Default.Class != task.ClassFatal || o.Reply.Written != 0 {
		t.Errorf("got %+v, %+v, want no HTTP/2", o, o.Reply)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, frame(0, "hi"))
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	call, err := New("grpcs://"+server.Listener.Addr().String()+"/a.B/C", nil, []byte{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := attemptOf(t, &Executor{}, taskOf(call))
	if o.Error != task.ErrorTLS || !strings.Contains(o.Message, "certificate") || o.Reply.Default.Class != task.ClassFatal {
		t.Errorf("got %+v, %+v, want a certificate that is not valid", o, o.Reply)
	}
	call.Network.Insecure = true
	if o = attemptOf(t, &Executor{}, taskOf(call)); o.Exit != 0 || o.Reply.Phases.TLS == 0 {
		t.Errorf("got %+v, %+v, want a success with TLS", o, o.Reply)
	}
}

// frames is a server of HTTP/2 that answers the first stream with what a test writes.
func frames(t *testing.T, answer func(f *http2.Framer, stream uint32)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			go func() {
				defer func() { _ = c.Close() }()
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(c, preface); err != nil {
					return
				}
				f := http2.NewFramer(c, c)
				_ = f.WriteSettings()
				for {
					next, err := f.ReadFrame()
					if err != nil {
						return
					}
					if h := next.Header(); h.Type == http2.FrameData && h.Flags.Has(http2.FlagDataEndStream) {
						answer(f, h.StreamID)
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestStreamsThatAreReset(t *testing.T) {
	for _, tt := range []struct {
		code      http2.ErrCode
		begun     bool // a reply
		retried   bool
		ambiguous bool
		want      string
	}{
		{code: http2.ErrCodeRefusedStream, retried: true, want: "the server refused the request (REFUSED_STREAM)"},
		{code: http2.ErrCodeRefusedStream, begun: true, ambiguous: true, want: "read the reply: the server refused"},
		{code: http2.ErrCodeCancel, ambiguous: true, want: "HTTP/2 stream reset with code 8"},
		{code: http2.ErrCodeInternal, ambiguous: true, want: "HTTP/2 stream reset with code 2"},
	} {
		address := frames(t, func(f *http2.Framer, stream uint32) {
			if tt.begun {
				var head bytes.Buffer
				encoder := hpack.NewEncoder(&head)
				_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
				_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
			}
			_ = f.WriteRSTStream(stream, tt.code)
		})
		o := attemptOf(t, &Executor{}, rawTask(t, address))
		if e := o.Reply.Default; (e.Class == task.ClassRetryable) != tt.retried || e.Ambiguous != tt.ambiguous ||
			o.Error != task.ErrorReset || !strings.Contains(o.Message, tt.want) {
			t.Errorf("%v: got %+v, %+v, want %q", tt.code, o, o.Reply, tt.want)
		}
	}
}

// One attempt is one call on the wire, whatever a server does that has net/http's pool send again.
func TestOneCallOnTheWire(t *testing.T) {
	var seen atomic.Int64
	address := frames(t, func(f *http2.Framer, _ uint32) {
		seen.Add(1)
		_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
	})
	tk := rawTask(t, address)
	tk.Target.(*Call).Idempotent = true
	if o := attemptOf(t, &Executor{}, tk); o.Exit == 0 || o.Reply.Default.Class != task.ClassRetryable {
		t.Errorf("got %+v, %+v, want a failure that may be tried again", o, o.Reply)
	}
	if seen.Load() != 1 {
		t.Errorf("got %d calls on the wire, want 1", seen.Load())
	}
}

func FuzzReply(f *testing.F) {
	f.Add(200, "application/grpc", "gzip", "0", "x", frame(0, "hi"))
	f.Add(200, "application/grpc", "", "14", "%41%zz%", frame(1, "hi"))
	f.Fuzz(func(t *testing.T, status int, kind, encoding, code, message, body string) {
		response := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}, "Grpc-Encoding": {encoding}},
			Trailer: http.Header{"Grpc-Status": {code}, "Grpc-Message": {message}}, Body: io.NopCloser(strings.NewReader(body))}
		r, err := readReply(response, 1000)
		if (r == nil) != (err != nil) && !errors.Is(err, errTooLarge) {
			t.Fatalf("got %v, %v", r, err)
		}
		if r != nil && (r.code < 0 || int(r.code) >= len(task.StatusNames()) || len(r.message) > 1000) {
			t.Fatalf("got %+v", r)
		}
	})
}

func FuzzReflection(f *testing.F) {
	f.Add([]byte("\x22\x03\x0a\x01x"))
	f.Add([]byte("\x3a\x04\x08\x05\x12\x00"))
	f.Fuzz(func(_ *testing.T, message []byte) {
		q := newQuestions(context.Background(), nil, nil)
		_ = q.read(message)
		q.files.Missing()
	})
}
