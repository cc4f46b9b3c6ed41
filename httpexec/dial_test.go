package httpexec

import (
	"crypto/tls"
	"net/http/httptrace"
	"testing"

	"github.com/10f93571/retry/runner"
)

// A connection that broke before anything was written has not seen the request.
func TestBrokenBeforeTheRequest(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		connected := make(chan struct{})
		s := serve(t, func(c *wire) {
			<-connected
			c.reset()
			close(c.server.reached)
		})
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{ConnectDone: func(string, string, error) {
			close(connected)
			<-s.reached
		}})
		e := sending(t, method, s.url("http"), nil)
		o := e.Execute(ctx, e.task(), runner.Call{Number: 1})
		s.saw(0)
		faulty{class: "reset", exit: 55, message: "send the request: "}.compare(t, o, "retry")
	}
}

// The bytes of the handshake are not the request's.
func TestBrokenAfterTheHandshake(t *testing.T) {
	a := newAuthority(t)
	for _, method := range []string{"GET", "POST"} {
		s := serveTLS(t, a.server(nil), func(c *wire) {
			ok(c.server, c.Conn.(*tls.Conn).Handshake())
			c.reset()
			close(c.server.reached)
		})
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{TLSHandshakeDone: func(tls.ConnectionState, error) { <-s.reached }})
		e := sending(t, method, s.url("https"), func(e *sender) { e.Network.CACert = a.file })
		o := e.Execute(ctx, e.task(), runner.Call{Number: 1})
		s.saw(0)
		faulty{class: "reset", exit: 55, message: "send the request: "}.compare(t, o, "retry")
	}
}
