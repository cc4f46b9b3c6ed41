package httpexec

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// patience is how long a test waits for an event. Usually a fraction of it is enough.
const patience = 30 * time.Second

// script is what a server does on one connection, which is closed when the script returns.
type script func(c *wire)

// server follows a script for each connection, and counts every byte of the requests.
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

// serve follows the n-th script on the n-th connection. A connection without a script fails the test.
func serve(t *testing.T, scripts ...script) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	return serveOn(t, listener, nil, scripts)
}

// serveTLS does the same over TLS, and over HTTP/2 if the configuration offers it.
func serveTLS(t *testing.T, config *tls.Config, scripts ...script) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
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

// stop waits until the scripts have returned.
func (s *server) stop() {
	_ = s.listener.Close()
	s.running.Wait()
}

// url returns the URL of the server with a scheme.
func (s *server) url(scheme string) string { return scheme + "://" + s.address() + "/path?q=1" }

func (s *server) address() string { return s.listener.Addr().String() }

// saw fails unless the server has received exactly this number of requests, and no other byte.
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

// request reads and notes one request with its body.
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

// header reads up to the empty line.
func (c *wire) header(seen *bytes.Buffer) http.Header {
	header := http.Header{}
	for {
		line, err := c.reader.ReadString('\n')
		seen.WriteString(line)
		if err != nil {
			if seen.Len() > 0 {
				c.server.Errorf("got the header %q, %v, want a whole one", seen, err)
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
			c.server.Errorf("got chunk %q, %v, %v, want a valid one", line, err, err2)
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

// send writes to the client, which may have closed the connection.
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

// stall waits until the client has closed the connection, and counts the bytes that it sends until then.
func (c *wire) stall() {
	n, err := io.Copy(io.Discard, c.reader)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		c.server.Error("the client did not go")
	}
	c.server.mutex.Lock()
	defer c.server.mutex.Unlock()
	c.server.surplus += int(n)
}

// client is a task with its executor, and with the output that users see.
type client struct {
	*sender
	t        *testing.T
	task     *task.Task
	out, err bytes.Buffer
	attempts int
}

// newClient returns a client for a GET. Its executor is closed at the end of the test.
func newClient(t *testing.T, url string, change func(*client)) *client {
	t.Helper()
	c := &client{sender: newSender(t, "GET", url, nil), t: t}
	c.task = &task.Task{ID: "01a1fb79-5735-7565-b3a1-977a5b9a39db", Kind: request.Kind}
	c.task.Target = c.Request
	c.Output = Output{Stdout: &c.out, Stderr: &c.err}
	if change != nil {
		change(c)
	}
	t.Cleanup(func() { c.Close(c.task) })
	return c
}

// attempt executes the next attempt.
func (c *client) attempt() task.Outcome {
	c.attempts++
	return c.Execute(c.t.Context(), c.task, runner.Call{Number: c.attempts})
}

// flush has the executor write its reply, given the status of the task after the attempt.
func (c *client) flush(to task.Status) error {
	c.t.Helper()
	c.task.Status = to
	sig, err := c.Flush(c.task, nil)
	if sig != nil {
		c.t.Errorf("got signal %v, want none", sig)
	}
	return err
}

// saw fails unless just this reached stdout and stderr.
func (c *client) saw(out, err string) {
	c.t.Helper()
	if c.out.String() != out || c.err.String() != err {
		c.t.Errorf("on stdout %q, want %q\non stderr %q, want %q", c.out.String(), out, c.err.String(), err)
	}
}

// into has the reply written to a file in a new directory, and returns its path.
func (c *client) into(name string) string {
	c.t.Helper()
	request.Of(c.task).Output = filepath.Join(c.t.TempDir(), name)
	return request.Of(c.task).Output
}

// checkFile fails unless a file has this content, and its directory just these files.
func checkFile(t *testing.T, path, content string, names ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("got content %q, %v, want %q", brief(got), err, brief([]byte(content)))
	}
	checkDir(t, filepath.Dir(path), names...)
}

// checkDir fails unless a directory has just these files.
func checkDir(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	got := map[string]bool{}
	for _, entry := range entries {
		got[entry.Name()] = true
	}
	for _, name := range names {
		if !got[name] {
			t.Errorf("got no file %s, want one", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("got file %s, want none", name)
	}
}

func brief(text []byte) []byte { return text[:min(len(text), 60)] }

func aPart(text string) []request.Part { return []request.Part{{Text: []byte(text)}} }

func lines(text ...string) []string { return text }

// The frames of HTTP/2 that the tests need, RFC 9113.
const (
	frameData      = 0
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	frameGoAway    = 7
	flagEndStream  = 1
	flagAck        = 1
	flagEndHeaders = 4

	codeNone          = 0
	codeInternal      = 2
	codeRefusedStream = 7
	codeEnhanceCalm   = 11

	status200 = "\x88" // of HPACK's static table
	status500 = "\x8e"
)

// http2 calls do for each request on an HTTP/2 connection, until do returns false or the client has closed it.
func http2(do func(c *wire, stream uint32) (over bool)) script {
	return func(c *wire) {
		preface := make([]byte, 24)
		if _, err := io.ReadFull(c.reader, preface); err != nil {
			c.server.Errorf("got %q, %v, want the preface of HTTP/2", preface, err)
			return
		}
		c.frame(frameSettings, 0, 0, "")
		acked, waiting := false, uint32(0) // the client writes no more once both are there
		for {
			kind, flags, stream, err := c.readFrame()
			switch {
			case err != nil:
				return
			case kind == frameSettings && flags&flagAck == 0:
				c.frame(frameSettings, flagAck, 0, "")
			case kind == frameSettings:
				acked = true
			case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
				c.note("HTTP/2")
				waiting = stream
			}
			if acked && waiting != 0 {
				stream, waiting = waiting, 0
				if do(c, stream) {
					return
				}
			}
		}
	}
}

func (c *wire) readFrame() (kind, flags byte, stream uint32, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(c.reader, head); err != nil {
		return 0, 0, 0, err
	}
	length := binary.BigEndian.Uint32(append([]byte{0}, head[:3]...))
	_, err = io.CopyN(io.Discard, c.reader, int64(length))
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]) & 0x7fffffff, err
}

func (c *wire) frame(kind, flags byte, stream uint32, payload string) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	head = binary.BigEndian.AppendUint32(append(head, kind, flags), stream)
	_, _ = c.Write(append(head, payload...))
}

// number encodes a number of 32 bits.
func number32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func (c *wire) resetStream(stream, code uint32) { c.frame(frameReset, 0, stream, number32(code)) }

// goAway says that the server processes no stream after last.
func (c *wire) goAway(last, code uint32) { c.frame(frameGoAway, 0, 0, number32(last)+number32(code)) }

// replies reads a request, sends a reply unchanged, and waits until the client closes.
func replies(format string, args ...any) script {
	return func(c *wire) {
		c.request()
		c.send(format, args...)
		c.stall()
	}
}

// closes reads a request, sends a reply, which may be cut, and closes.
func closes(part string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", part)
	}
}

// resets reads a request, sends a reply, which may be cut, and resets the connection once the client has read that.
func resets(part string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", part)
		if part != "" {
			<-c.server.reached
		}
		c.reset()
	}
}

// stalls does the same, and then waits until the time of the attempt is over.
func stalls(part string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", part)
		if part != "" {
			<-c.server.reached
		}
		c.server.timeUp()
		c.stall()
	}
}

const (
	okReply   = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	cutReply  = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"
	cutHeader = "HTTP/1.1 200 OK\r\nContent-Le"
)

// authority signs certificates for tests.
type certificate = x509.Certificate

type authority struct {
	*testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string // its certificate, as --cacert wants it
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	der, a.key = a.sign(template, template, nil)
	var err error
	a.certificate, err = x509.ParseCertificate(der)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// sign makes a key and a certificate for it. Without a signer the certificate is signed with its own key.
func (a *authority) sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(a, err)
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	testkit.Must(a, err)
	return der, key
}

// server returns the configuration of a server on 127.0.0.1. change may change its certificate.
func (a *authority) server(change func(*x509.Certificate), protocols ...string) *tls.Config {
	a.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"service.example"},
	}
	if change != nil {
		change(template)
	}
	der, key := a.sign(template, a.certificate, a.key)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos: protocols}
}

// client writes the certificate and the key of a client into one file.
func (a *authority) client() string {
	a.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	der, key := a.sign(template, a.certificate, a.key)
	secret, err := x509.MarshalECPrivateKey(key)
	testkit.Must(a, err)
	file := filepath.Join(a.TempDir(), "client.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})...)
	testkit.Must(a, os.WriteFile(file, text, 0o600))
	return file
}

// pool returns a pool with this authority only.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}
