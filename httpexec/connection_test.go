package httpexec

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

func TestExecuteOverTLS(t *testing.T) {
	a := newAuthority(t)
	wantsClient := a.server(nil)
	wantsClient.ClientAuth, wantsClient.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	client := a.client()
	http2Reply := http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, status200)
		c.frame(frameData, flagEndStream, stream, "hello")
		return false
	})
	tests := []struct {
		name   string
		config *tls.Config
		script script
		change func(*sender)
	}{
		{"believed", a.server(nil), replies(okReply), nil},
		{"anybody", a.server(nil), replies(okReply), func(e *sender) { e.Network.CACert, e.Network.Insecure = "", true }},
		{"a client's certificate", wantsClient, replies(okReply), func(e *sender) { e.Network.Cert = client }},
		{"HTTP/2", a.server(nil, "h2"), http2Reply, nil},
		{"HTTP/1.1 asked for", a.server(nil, "h2", "http/1.1"), replies(okReply), func(e *sender) { e.Network.HTTP1 = true }},
		{"another host's address", a.server(func(c *certificate) { c.IPAddresses = nil }), replies(okReply), func(e *sender) {
			u := must(e.Request.URL)
			e.Network.Resolve = []string{"service.example:" + u.Port() + ":127.0.0.1"}
			e.Request.URL = "https://Service.example:" + u.Port() + "/"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serveTLS(t, tt.config, tt.script)
			e := sending(t, "GET", s.url("https"), func(e *sender) { e.Network.CACert = a.file })
			if tt.change != nil {
				tt.change(e)
			}
			o := execute(t, e)
			s.saw(1)
			if o.Exit != 0 || o.Reply.Body != "hello" || o.Reply.Written != 1 || o.Reply.Phases.TLS <= 0 {
				t.Errorf("%+v, %+v", o, o.Reply)
			}
		})
	}
}

func TestExecuteOverAUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	s := serveOn(t, listener, nil, []script{replies(okReply)})
	o := execute(t, sending(t, "GET", "http://anything.invalid/", func(e *sender) {
		e.Network.UnixSocket = path
		e.Network.Proxy = "http://nowhere.invalid"
	}))
	s.saw(1)
	if o.Exit != 0 || o.Reply.Body != "hello" {
		t.Errorf("%+v", o)
	}
}

func TestExecuteThroughAProxy(t *testing.T) {
	s := serve(t, replies(okReply))
	o := execute(t, sending(t, "GET", "http://service.example/path", func(e *sender) { e.Network.Proxy = "me:pw@" + s.address() }))
	s.saw(1)
	if o.Exit != 0 || !strings.HasPrefix(s.requests[0], "GET http://service.example/path HTTP/1.1\r\n") ||
		!strings.Contains(s.requests[0], "Proxy-Authorization: Basic bWU6cHc=\r\n") {
		t.Errorf("%+v\n%q", o, s.requests)
	}
}

func TestExecuteThroughATunnel(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil), replies(okReply))
	proxy := serve(t, func(c *wire) {
		c.request()
		c.send("HTTP/1.1 200 Connected\r\n\r\n")
		to, err := net.Dial("tcp", s.address())
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		go func() { _, _ = io.Copy(c.Conn, to) }()
		_, _ = io.Copy(to, c.reader)
	})
	o := execute(t, sending(t, "GET", "https://service.example/path", func(e *sender) {
		e.Network.Proxy, e.Network.CACert = proxy.address(), a.file
	}))
	proxy.saw(1)
	s.saw(1)
	asked := strings.HasPrefix(proxy.requests[0], "CONNECT service.example:443 HTTP/1.1\r\n")
	if o.Exit != 0 || o.Reply.Body != "hello" || o.Reply.Written != 1 || !asked {
		t.Errorf("%+v\n%q", o, proxy.requests)
	}
}
