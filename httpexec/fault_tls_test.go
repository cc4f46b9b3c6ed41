package httpexec

import (
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func TestFaultsOfTLS(t *testing.T) {
	a := newAuthority(t)
	hello := func(c *wire) { // reads the client's whole first record
		head := make([]byte, 5)
		_, _ = io.ReadFull(c.reader, head)
		_, _ = io.CopyN(io.Discard, c.reader, int64(head[3])<<8|int64(head[4]))
	}
	const passing = "TLS handshake: "
	for _, f := range []faulty{
		{name: "closed", script: hello, message: passing + "the connection was closed", i: "retry"},
		{name: "cut", script: func(c *wire) {
			hello(c)
			c.send("\x16\x03\x03\x00\x7a\x02\x00")
		}, message: passing + "the connection was closed", i: "retry"},
		{name: "reset", script: func(c *wire) {
			hello(c)
			c.reset()
		}, message: passing + "connection reset by peer", i: "retry"},
		{name: "late", script: func(c *wire) {
			hello(c)
			c.server.timeUp()
			_, _ = io.Copy(io.Discard, c.reader)
		}, class: "timeout", exit: 28, message: passing + "timed out after 5s", i: "retry"},
		{name: "no TLS", script: func(c *wire) {
			hello(c)
			c.send("HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, c.reader)
		}, message: passing + "the server does not speak TLS", i: "stop"},
	} {
		f.n = f.i
		if f.class == "" {
			f.class, f.exit = "tls", 35
		}
		f.change = func(e *sender) { e.Network.CACert = a.file }
		f.check(t, "https", nil)
	}
}

func TestRefusalsOfTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	alert := a.server(nil)
	alert.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("refused") }
	wantsClient := a.server(nil)
	wantsClient.ClientAuth, wantsClient.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	handshake := func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) }
	old := a.server(nil)
	old.MaxVersion = tls.VersionTLS11 //nolint:gosec // this is the point
	tests := []struct {
		faulty
		config *tls.Config
	}{
		{faulty{name: "unknown authority", exit: 60, message: "unknown authority"}, stranger.server(nil)},
		{faulty{name: "expired", exit: 60, message: "expired"}, a.server(func(c *certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{faulty{name: "another host's", exit: 60, message: "127.0.0.1"}, a.server(func(c *certificate) { c.IPAddresses[0][15] = 9 })},
		{faulty{name: "alert", exit: 35, message: "remote error"}, alert},
		{faulty{name: "too old", exit: 35, message: "TLS handshake: "}, old},
	}
	for _, tt := range tests {
		tt.class, tt.script, tt.i, tt.n = "tls", handshake, "stop", "stop"
		tt.change = func(e *sender) { e.Network.CACert = a.file }
		tt.check(t, "https", tt.config)
	}
}

// In TLS 1.3 a server refuses a client after the client has begun to write.
func TestClientWithoutACertificate(t *testing.T) {
	a := newAuthority(t)
	config := a.server(nil)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	s := serveTLS(t, config, func(c *wire) { _, _ = c.reader.ReadByte() })
	o := execute(t, sending(t, "POST", s.url("https"), func(e *sender) { e.Network.CACert = a.file }))
	if o.Error != task.ErrorTLS || describe(o.Reply.Default) != "stop" || !strings.Contains(o.Message, "certificate required") {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}
