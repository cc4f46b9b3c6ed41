//go:build unix

package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/10f93571/retry/internal/testkit"
)

// handler is what a raw server does on each connection, which is closed afterwards.
type handler func(c *rawConn)

// rawServer counts the requests on the wire. Bytes that come after a request count as another one.
type rawServer struct {
	address  string
	requests atomic.Int64
	sent     atomic.Int64 // bytes of replies
	listener net.Listener
	running  sync.WaitGroup
}

// rawConn is a connection to a raw server.
type rawConn struct {
	net.Conn
	tcp    *net.TCPConn
	reader *bufio.Reader
	server *rawServer
}

// startRawServer starts a server on loopback that runs the handler on each connection, behind TLS where config is not
// nil.
func startRawServer(t *testing.T, config *tls.Config, do handler) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := &rawServer{address: listener.Addr().String(), listener: listener}
	s.running.Go(func() {
		for {
			tcp, err := listener.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() { s.serve(tcp.(*net.TCPConn), config, do) })
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *rawServer) serve(tcp *net.TCPConn, config *tls.Config, do handler) {
	defer func() { _ = tcp.Close() }()
	_ = tcp.SetDeadline(time.Now().Add(patience))
	c := &rawConn{Conn: tcp, tcp: tcp, server: s}
	if config != nil {
		c.Conn = tls.Server(tcp, config)
	}
	c.reader = bufio.NewReader(c.Conn)
	do(c)
}

// stop waits until every connection is served. The clients are gone, so none stays open.
func (s *rawServer) stop() {
	_ = s.listener.Close()
	s.running.Wait()
}

// request reads a whole request. A CONNECT is not counted.
func (c *rawConn) request() *http.Request {
	r, err := http.ReadRequest(c.reader)
	if err != nil {
		return &http.Request{Header: http.Header{}, URL: &url.URL{}}
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Method != http.MethodConnect {
		c.server.requests.Add(1)
	}
	return r
}

// send writes a reply, or a part of one.
func (c *rawConn) send(text string) { _, _ = io.WriteString(c.Conn, text) }

// drain waits until the client has gone.
func (c *rawConn) drain() {
	if n, _ := io.Copy(io.Discard, c.reader); n > 0 {
		c.server.requests.Add(1)
	}
}

func (c *rawConn) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}

// readHello reads the first record of a TLS handshake.
func (c *rawConn) readHello() {
	head := make([]byte, 5)
	_, _ = io.ReadFull(c.reader, head)
	_, _ = io.CopyN(io.Discard, c.reader, int64(binary.BigEndian.Uint16(head[3:])))
}

// http2 reads an HTTP/2 request and exchanges settings, then writes one more frame: RFC 9113.
func http2(kind byte, stream uint32, payload ...byte) handler {
	const settings, headers, data, ends, acknowledged = 4, 1, 0, 1, 1
	frame := func(c *rawConn, kind, flags byte, stream uint32, payload ...byte) {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		head = binary.BigEndian.AppendUint32(append(head, flags), stream)
		_, _ = c.Write(append(head, payload...))
	}
	return func(c *rawConn) {
		_, _ = io.CopyN(io.Discard, c.reader, 24)
		frame(c, settings, 0, 0)
		for head, agreed, asked := make([]byte, 9), false, false; !agreed || !asked; {
			if _, err := io.ReadFull(c.reader, head); err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, c.reader, int64(binary.BigEndian.Uint32(append([]byte{0}, head[:3]...))))
			switch kind, flags := head[3], head[4]; {
			case kind == settings && flags == acknowledged:
				agreed = true
			case kind == settings:
				frame(c, settings, acknowledged, 0)
			case (kind == headers || kind == data) && flags&ends != 0:
				asked = true
				c.server.requests.Add(1)
			}
		}
		frame(c, kind, 0, stream, payload...)
		_, _ = io.Copy(io.Discard, c.reader) // the frames with which the client closes
	}
}

// replies answers a request, and waits until the client has gone.
func replies(text string) handler {
	return func(c *rawConn) {
		c.request()
		c.send(text)
		c.drain()
	}
}

// closes answers a request, or a part of it, and closes the connection.
func closes(part string) handler {
	return func(c *rawConn) {
		c.request()
		c.send(part)
	}
}

func resets(c *rawConn) {
	c.request()
	c.reset()
}

// redirects redirects to /next, and answers there with then.
func redirects(status, then string) handler {
	return func(c *rawConn) {
		if c.request().URL.Path == "/next" {
			c.send(then)
			return
		}
		c.send("HTTP/1.1 " + status + " Elsewhere\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
		c.drain()
	}
}

func closesAfterHello(c *rawConn) { c.readHello() }

func stallsInHandshake(c *rawConn) {
	c.readHello()
	_, _ = c.reader.ReadByte()
}

// rawTLS returns a server's certificate for 127.0.0.1, and the file that makes a client believe it.
func rawTLS(t *testing.T) (config *tls.Config, file string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	file = filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600))
	return &tls.Config{Certificates: s.TLS.Certificates}, file
}

// refusing is a configuration that ends each handshake with an alert.
func refusing() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return nil,
			errors.New("refused")
	}}
}

// serve FILE starts a raw HTTP server, and puts its address into the variables URL and HOST. Each line of the file is
// for one connection, the last line for all that follow. Each request is appended to the file requests, below a line "#
// N".
//
//	503 Retry-After:1 = busy    a reply: its status, headers, and after the = its body
//	"HTTP/1.1 200 OK\r\n…"      bytes as they are; with stall behind them, nothing more
//	close, reset                the end of the connection, once the request is read
//	stall                       no reply
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FILE")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	s := &scriptedServer{log: ts.MkAbs("requests"), lines: strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n"),
		done: make(chan struct{})}
	ts.Check(os.WriteFile(s.log, nil, 0o600))
	s.running.Go(func() { s.accept(listener) })
	ts.Setenv("URL", "http://"+listener.Addr().String())
	ts.Setenv("HOST", listener.Addr().String())
	ts.Defer(func() {
		_ = listener.Close()
		close(s.done)
		s.running.Wait()
	})
}

// scriptedServer is a server that does what lines say.
type scriptedServer struct {
	log     string // a file
	lines   []string
	running sync.WaitGroup
	done    chan struct{}
	mutex   sync.Mutex
	count   int
}

func (s *scriptedServer) accept(listener net.Listener) {
	for n := 0; ; n++ {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		line := s.lines[min(n, len(s.lines)-1)]
		s.running.Go(func() {
			defer func() { _ = c.Close() }()
			if s.readRequest(c) {
				s.answer(c.(*net.TCPConn), line)
			}
		})
	}
}

// readRequest reads one request and logs it.
func (s *scriptedServer) readRequest(c net.Conn) bool {
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return false
	}
	text, err := httputil.DumpRequest(request, true)
	if err != nil {
		text = []byte(err.Error())
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count++
	file, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	_, err = fmt.Fprintf(file, "# %d\n%s\n", s.count, strings.ReplaceAll(string(text), "\r", ""))
	return err == nil
}

func (s *scriptedServer) answer(c *net.TCPConn, line string) {
	switch {
	case line == "close":
	case line == "reset":
		_ = c.SetLinger(0)
	case line == "stall":
		<-s.done
	case strings.HasPrefix(line, `"`):
		quoted, stalls := strings.CutSuffix(line, " stall")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			text = err.Error()
		}
		_, _ = io.WriteString(c, text)
		if stalls {
			<-s.done
		}
	default:
		_, _ = io.WriteString(c, replyOf(line))
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

// replyOf returns the bytes of a reply.
func replyOf(line string) string {
	head, body, _ := strings.Cut(line, " = ")
	fields := strings.Fields(head)
	status, _ := strconv.Atoi(fields[0])
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, header := range fields[1:] {
		b.WriteString(strings.Replace(header, ":", ": ", 1) + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	return b.String()
}
