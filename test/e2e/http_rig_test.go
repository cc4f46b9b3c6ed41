//go:build unix

package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// deed is what a raw server does on each of its connections, which are closed after it.
type deed func(c *rawConn)

// rawServer counts the requests on the wire. Bytes that come after a request are one, too.
type rawServer struct {
	address  string
	requests atomic.Int64
	sent     atomic.Int64 // bytes of replies
	listener net.Listener
	running  sync.WaitGroup
}

// rawConn is a connection of it.
type rawConn struct {
	net.Conn
	tcp    *net.TCPConn
	reader *bufio.Reader
	server *rawServer
}

// rawServe starts a server on loopback that does the same on each connection, behind TLS where there is a configuration for it.
func rawServe(t *testing.T, config *tls.Config, do deed) *rawServer {
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
			s.running.Go(func() { s.follow(tcp.(*net.TCPConn), config, do) })
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *rawServer) follow(tcp *net.TCPConn, config *tls.Config, do deed) {
	defer func() { _ = tcp.Close() }()
	_ = tcp.SetDeadline(time.Now().Add(patience))
	c := &rawConn{Conn: tcp, tcp: tcp, server: s}
	if config != nil {
		c.Conn = tls.Server(tcp, config)
	}
	c.reader = bufio.NewReader(c.Conn)
	do(c)
}

// stop waits until nobody counts any more. The clients are gone, so no connection stays.
func (s *rawServer) stop() {
	_ = s.listener.Close()
	s.running.Wait()
}

// request reads one whole. What opens a way through a proxy is none yet.
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

// say writes a reply, or a part of one.
func (c *rawConn) say(text string) { _, _ = io.WriteString(c.Conn, text) }

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

// hello reads the first record of a handshake.
func (c *rawConn) hello() {
	head := make([]byte, 5)
	_, _ = io.ReadFull(c.reader, head)
	_, _ = io.CopyN(io.Discard, c.reader, int64(binary.BigEndian.Uint16(head[3:])))
}

// http2 reads a request of HTTP/2, and both ends' settings, then writes one frame more: RFC 9113.
func http2(kind byte, stream uint32, payload ...byte) deed {
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
		_, _ = io.Copy(io.Discard, c.reader) // frames of its farewell
	}
}

// replies answers a request, and waits until the client has gone.
func replies(text string) deed {
	return func(c *rawConn) {
		c.request()
		c.say(text)
		c.drain()
	}
}

// closes answers it, or begins to.
func closes(part string) deed {
	return func(c *rawConn) {
		c.request()
		c.say(part)
	}
}

func resets(c *rawConn) {
	c.request()
	c.reset()
}

// redirects leads to /next, where then is said.
func redirects(status, then string) deed {
	return func(c *rawConn) {
		if c.request().URL.Path == "/next" {
			c.say(then)
			return
		}
		c.say("HTTP/1.1 " + status + " Elsewhere\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
		c.drain()
	}
}

func hangsUp(c *rawConn) { c.hello() }

func stallsInHandshake(c *rawConn) {
	c.hello()
	_, _ = c.reader.ReadByte()
}

// rawTLS returns a server's certificate for 127.0.0.1, and the file that makes a client believe it.
func rawTLS(t *testing.T) (config *tls.Config, file string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	file = filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return &tls.Config{Certificates: s.TLS.Certificates}, file
}

// refusing is a configuration that ends each handshake with an alert.
func refusing() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("refused") }}
}
