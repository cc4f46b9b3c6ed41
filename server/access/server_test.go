package access

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// pipeListener accepts what dial gives it: the clock of a synctest bubble moves deadlines of net.Pipe.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// inBubble runs a test against a server whose time is the bubble's.
func inBubble(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, l *pipeListener)) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := NewServer(handler)
		go func() { _ = server.Serve(l) }()
		test(t, l)
		_ = server.Close()
	})
}

// send writes text, ignoring that the server closes in between.
func send(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

// A client that sends its header, or its body, byte by byte loses its connection when its time is over. Another client
// that comes in the meantime is served at once.
func TestSlowClients(t *testing.T) {
	tests := []struct {
		name, begin string
		want        time.Duration
	}{
		{"header", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", headerTimeout},
		{"body", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", readTimeout},
		{"nothing", "", headerTimeout},
		{"idle", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", idleTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, whoAmI, func(t *testing.T, l *pipeListener) {
				began := time.Now()
				slow := l.dial()
				var sending sync.WaitGroup
				sending.Go(func() {
					send(slow, tt.begin)
					for tt.name == "header" || tt.name == "body" {
						time.Sleep(time.Second)
						if _, err := io.WriteString(slow, "x"); err != nil {
							return
						}
					}
				})
				synctest.Wait()
				other := l.dial()
				go send(other, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				reply, err := io.ReadAll(other)
				if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 200 OK") || time.Since(began) != 0 {
					t.Errorf("other client: got %q, %v after %v, want it served at once", reply, err, time.Since(began))
				}
				_, _ = io.Copy(io.Discard, slow)
				if got := time.Since(began); got < tt.want || got > tt.want+2*time.Second {
					t.Errorf("slow client: got its connection closed after %v, want %v", got, tt.want)
				}
				_ = slow.Close()
				sending.Wait()
			})
		})
	}
}

// A client that does not read its answer loses its connection, too.
func TestClientThatDoesNotRead(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		began := time.Now()
		_, err := w.Write(make([]byte, 1<<20))
		if got := time.Since(began); err == nil || got != writeTimeout {
			t.Errorf("got %v after %v, want an error after %v", err, got, writeTimeout)
		}
	}, func(_ *testing.T, l *pipeListener) {
		send(l.dial(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(2 * writeTimeout)
		synctest.Wait()
	})
}

// Events and blobs may take longer than the server's timeouts, as long as something moves.
func TestPatient(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		w = Patient(w, r)
		body, err := io.ReadAll(r.Body)
		if len(body) != 10 || err != nil {
			t.Errorf("got %q, %v, want a body of 10 bytes", body, err)
		}
		for range 10 {
			time.Sleep(writeTimeout - time.Second)
			if _, err := io.WriteString(w, "x"); err != nil {
				t.Errorf("write: got %v, want none", err)
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flush: got %v, want none", err)
			}
		}
	}, func(t *testing.T, l *pipeListener) {
		c := l.dial()
		go func() {
			send(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nConnection: close\r\n\r\n")
			for range 10 {
				time.Sleep(readTimeout - time.Second)
				send(c, "x")
			}
		}()
		reply, err := io.ReadAll(c)
		if got := strings.Count(string(reply), "\r\nx\r\n"); got != 10 || err != nil {
			t.Errorf("got %q, %v, want ten chunks", reply, err)
		}
	})
}

// A client that stalls within a blob loses its connection after the time of one read.
func TestPatientEnds(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		Patient(w, r)
		began := time.Now()
		if _, err := io.ReadAll(r.Body); err == nil || time.Since(began) != readTimeout {
			t.Errorf("got %v after %v, want an error after %v", err, time.Since(began), readTimeout)
		}
	}, func(_ *testing.T, l *pipeListener) {
		c := l.dial()
		send(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
}

// Who refuses a blob without reading it does not wait for the rest of it for ever, and events go on without a body.
func TestPatientWithoutReading(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		Patient(w, r)
		if r.Method == http.MethodGet {
			time.Sleep(time.Hour)
			if r.Context().Err() != nil {
				t.Errorf("events: got %v, want them to go on", r.Context().Err())
			}
		}
	}, func(t *testing.T, l *pipeListener) {
		for _, request := range []string{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"} {
			c := l.dial()
			send(c, request)
			if reply, err := io.ReadAll(c); !strings.HasPrefix(string(reply), "HTTP/1.1 200 OK") {
				t.Errorf("got %q, %v, want 200", reply, err)
			}
		}
	})
}

// raw sends bytes over a socket, and returns the statuses of the replies and how often the handler ran.
func raw(t *testing.T, request string) (statuses []int, calls []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	seen := make(chan string, 10)
	a := New(Config{})
	server := NewServer(a.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		seen <- fmt.Sprintf("%s %s %q %v %q", r.Method, r.URL.Path, body, err, r.Header.Values("X"))
	})))
	go func() { _ = server.Serve(l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	testkit.Must(t, err)
	send(c, request)
	_ = c.(*net.TCPConn).CloseWrite()
	reader := bufio.NewReader(c)
	for {
		reply, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, reply.Body)
		statuses = append(statuses, reply.StatusCode)
	}
	_ = c.Close()
	testkit.Must(t, server.Shutdown(context.Background()))
	close(seen)
	for call := range seen {
		calls = append(calls, call)
	}
	return statuses, calls
}

// Where two readers could see another end of a request, what follows is never read as a request of its own.
func TestSmuggling(t *testing.T) {
	const post = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	const second = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	tests := []struct{ name, request, want string }{
		{"Content-Length and Transfer-Encoding",
			post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
			`[200] [POST /a "" <nil> []]`},
		{"chunked alone", post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + second,
			`[200] [POST /a "{}" <nil> []]`},
		{"two lengths", post + "Content-Length: 0\r\nContent-Length: 4\r\n\r\n" + second, `[400] []`},
		{"list of lengths", post + "Content-Length: 0, 4\r\n\r\n" + second, `[400] []`},
		{"length with a sign", post + "Content-Length: +4\r\n\r\n{}{}" + second, `[400] []`},
		{"unknown coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + second, `[501] []`},
		{"two codings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + second,
			`[501] []`},
		{"space before the colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + second, `[400] []`},
		{"HTTP/1.0 chunked", "POST /a HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n" + second,
			`[200] [POST /a "" <nil> []]`},
		{"two hosts", "GET /a HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", `[400] []`},
		{"no host", "GET /a HTTP/1.1\r\n\r\n", `[400] []`},
		{"host in the target", "GET http://evil.example/a HTTP/1.1\r\nHost: localhost\r\n\r\n", `[403] []`},
		{"folded line", "GET /a HTTP/1.1\r\nHost: localhost\r\nX: a\r\n Content-Length: 4\r\n\r\n" + second,
			// These are two requests, and the fold is within a value.
			`[200 200] [GET /a "" <nil> ["a Content-Length: 4"] GET /smuggled "" <nil> []]`},
		{"folded host", "GET /a HTTP/1.1\r\nHost: localhost\r\n evil.example\r\n\r\n", `[400] []`},
		{"bare CR", "GET /a HTTP/1.1\r\nHost: localhost\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n",
			`[400] []`},
		{"null in a value", "GET /a HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", `[400] []`},
		{"header of 64 KiB", "GET /a HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
			`[431] []`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			statuses, calls := raw(t, tt.request)
			if got := fmt.Sprint(statuses, calls); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
