package httpexec

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"testing"
	"testing/synctest"

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
		o := sending(t, method, s.url("http"), nil).Execute(ctx, &runner.Task{}, runner.Call{Number: 1})
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
		e := sending(t, method, s.url("https"), func(e *Executor) { e.Options.TLS.CACert = a.file })
		o := e.Execute(ctx, &runner.Task{}, runner.Call{Number: 1})
		s.saw(0)
		faulty{class: "reset", exit: 55, message: "send the request: "}.compare(t, o, "retry")
	}
}

// talker is a connection that notes whether it was read before it was written.
type talker struct {
	net.Conn
	written, early bool
}

func (c *talker) Read([]byte) (int, error) {
	c.early = c.early || !c.written
	return 0, errors.New("nothing to read")
}

func (c *talker) Write(p []byte) (int, error) {
	c.written = true
	return len(p), nil
}

func (c *talker) Close() error { return nil }

func TestConnReadsAfterItHasWritten(t *testing.T) {
	for name, then := range map[string]func(net.Conn){
		"written": func(c net.Conn) { _, _ = c.Write([]byte("GET")) },
		"closed":  func(c net.Conn) { _ = c.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			raw := &talker{}
			c := newWatch().guard(raw)
			go func() { _, _ = c.Read(nil) }()
			synctest.Wait()
			if raw.early {
				t.Errorf("%s: it reads first", name)
			}
			then(c)
			synctest.Wait() // the reader ends, or the bubble complains
		})
	}
}
