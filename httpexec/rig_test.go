package httpexec

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds how long a test waits for an event; a sound run needs a fraction of it.
const patience = 30 * time.Second

// script is what a server does on one connection. What it leaves open is closed when it returns.
type script func(c *wire)

// server is a raw one: each connection follows its own script, and every byte of a request is counted.
type server struct {
	*testing.T
	listener net.Listener
	running  sync.WaitGroup
	mutex    sync.Mutex
	accepted int
	requests []string // each one whole, as it came
	surplus  int      // bytes that came after them

	reached chan struct{} // closed when the client has got as far as the test wants it to
	timeUp  func()        // ends the attempt's time
}

// serve answers the n-th connection with the n-th script; a further one is a failure of the test.
func serve(t *testing.T, scripts ...script) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	return serveOn(t, listener, nil, scripts)
}

// serveTLS does the same behind TLS, with HTTP/2 where the configuration offers it.
func serveTLS(t *testing.T, config *tls.Config, scripts ...script) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	return serveOn(t, listener, config, scripts)
}

func serveOn(t *testing.T, listener net.Listener, config *tls.Config, scripts []script) *server {
	s := &server{T: t, listener: listener, reached: make(chan struct{}), timeUp: func() {}}
	s.running.Go(func() { s.accept(config, scripts) })
	t.Cleanup(s.stop)
	return s
}

func (s *server) accept(config *tls.Config, scripts []script) {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mutex.Lock()
		n := s.accepted
		s.accepted++
		s.mutex.Unlock()
		if n >= len(scripts) {
			s.Errorf("connection %d, and there are scripts for %d", n+1, len(scripts))
			_ = raw.Close()
			continue
		}
		s.running.Go(func() { s.follow(raw, config, scripts[n]) })
	}
}

func (s *server) follow(raw net.Conn, config *tls.Config, do script) {
	_ = raw.SetDeadline(time.Now().Add(patience))
	c := &wire{Conn: raw, raw: raw, server: s}
	if config != nil {
		c.Conn = tls.Server(raw, config)
	}
	c.reader = bufio.NewReader(c.Conn)
	defer func() { _ = c.Close() }()
	do(c)
}

// stop waits for the scripts.
func (s *server) stop() {
	_ = s.listener.Close()
	s.running.Wait()
}

// url is where the server is, for a scheme.
func (s *server) url(scheme string) string { return scheme + "://" + s.address() + "/path?q=1" }

func (s *server) address() string { return s.listener.Addr().String() }

// saw fails unless just so many requests came, over as many connections, and not a byte more.
func (s *server) saw(requests int) {
	s.Helper()
	s.stop()
	if len(s.requests) != requests || s.surplus > 0 {
		s.Errorf("%d requests on the wire and %d bytes more, want %d:\n%q", len(s.requests), s.surplus, requests, s.requests)
	}
}

// wire is the server's end of a connection.
type wire struct {
	net.Conn
	raw    net.Conn
	reader *bufio.Reader
	server *server
}

// request reads one request whole, its body too, and notes it.
func (c *wire) request() string {
	var seen bytes.Buffer
	header := c.header(&seen)
	if header == nil {
		return ""
	}
	switch length := header.Get("Content-Length"); {
	case header.Get("Transfer-Encoding") == "chunked":
		c.chunks(&seen)
	case length != "":
		n, _ := strconv.ParseInt(length, 10, 64)
		_, _ = io.CopyN(&seen, c.reader, n)
	}
	return c.note(seen.String())
}

// header reads as far as the empty line.
func (c *wire) header(seen *bytes.Buffer) http.Header {
	header := http.Header{}
	for {
		line, err := c.reader.ReadString('\n')
		seen.WriteString(line)
		if err != nil {
			if seen.Len() > 0 {
				c.server.Errorf("the request ends in the middle of its header: %q, %v", seen, err)
			}
			return nil
		}
		if strings.TrimSpace(line) == "" {
			return header
		}
		name, value, _ := strings.Cut(line, ":")
		header.Add(name, strings.TrimSpace(value))
	}
}

func (c *wire) chunks(seen *bytes.Buffer) {
	for {
		line, err := c.reader.ReadString('\n')
		seen.WriteString(line)
		size, err2 := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
		if err != nil || err2 != nil {
			c.server.Errorf("chunk %q: %v, %v", line, err, err2)
			return
		}
		_, _ = io.CopyN(seen, c.reader, size+2)
		if size == 0 {
			return
		}
	}
}

func (c *wire) note(request string) string {
	c.server.mutex.Lock()
	defer c.server.mutex.Unlock()
	c.server.requests = append(c.server.requests, request)
	return request
}

// send writes to the client, who may have gone.
func (c *wire) send(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Conn, format, args...)
}

// reset ends the connection so that the client gets ECONNRESET.
func (c *wire) reset() {
	if tcp, isTCP := c.raw.(*net.TCPConn); isTCP {
		_ = tcp.SetLinger(0)
	}
	_ = c.raw.Close()
}

// stall waits until the client has gone, and counts what it sends until then.
func (c *wire) stall() {
	n, err := io.Copy(io.Discard, c.reader)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		c.server.Error("the client did not go")
	}
	c.server.mutex.Lock()
	defer c.server.mutex.Unlock()
	c.server.surplus += int(n)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
