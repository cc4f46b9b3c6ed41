package pool

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// dial returns a connection over a pipe to a server that answers each request.
func dial(t *testing.T, key Key) *Conn {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			for reader := bufio.NewReader(server); ; {
				if _, err := http.ReadRequest(reader); err != nil {
					return
				}
				_, _ = io.WriteString(server, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}()
		return client, nil
	}}
	c, err := transport.NewClientConn(t.Context(), "http", "service.example:80")
	if err != nil {
		t.Fatal(err)
	}
	return &Conn{Client: c, Key: key, Made: time.Now()}
}

func use(t *testing.T, c *Conn) {
	t.Helper()
	r, _ := http.NewRequest(http.MethodGet, "http://service.example/", nil)
	reply, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
}

func isClosed(c *Conn) bool {
	synctest.Wait()
	return c.Err() != nil
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, key := New(10), Key{Address: "a"}
		one, two := dial(t, key), dial(t, key)
		p.Put(one, true)
		time.Sleep(idleFor / 2)
		p.Put(two, true)
		if got := p.Get(key); got != two {
			t.Errorf("got %p, want %p, which was used last", got, two)
		}
		use(t, two)
		p.Put(two, true)
		time.Sleep(idleFor/2 + 1)
		if !isClosed(one) || isClosed(two) || p.Idle() != 1 {
			t.Errorf("after 2s: got closed %v, %v, %d idle, want the first closed", isClosed(one), isClosed(two), p.Idle())
		}
		time.Sleep(idleFor / 2)
		if !isClosed(two) || p.Idle() != 0 || p.Get(key) != nil {
			t.Errorf("after 3s: got %d idle, want none", p.Idle())
		}
	})
}

// A connection that is always in use is replaced at last, so that names are resolved again.
func TestConnectionsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, key := New(10), Key{}
		c := dial(t, key)
		p.Put(c, true)
		uses := 0
		for ; p.Get(key) == c; uses++ {
			use(t, c)
			p.Put(c, true)
			time.Sleep(time.Second)
		}
		if uses != 60 || !isClosed(c) {
			t.Errorf("got %d uses, closed %v, want 60 and closed", uses, isClosed(c))
		}
		p.Close()
	})
}

func TestPoolIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(3)
		var conns []*Conn
		for i := range 5 {
			conns = append(conns, dial(t, Key{Address: string(rune('a' + i))}))
			p.Put(conns[i], true)
		}
		for i, c := range conns {
			if want := i < 2; isClosed(c) != want {
				t.Errorf("connection %d: got closed %v, want %v", i, !want, want)
			}
		}
		if p.Idle() != 3 || len(p.conns) != 3 {
			t.Errorf("got %d idle of %d keys, want 3", p.Idle(), len(p.conns))
		}
		p.Close()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, key := New(10), Key{}
		idle, used, late := dial(t, key), dial(t, key), dial(t, key)
		p.Put(used, true)
		p.Put(idle, true)
		if p.Get(key) != idle || p.Get(key) != used {
			t.Fatal("got other connections, want the two")
		}
		p.Put(idle, true)
		p.Close()
		if !isClosed(idle) || isClosed(used) || p.Get(key) != nil {
			t.Error("got the idle one open, or the other closed, want the reverse")
		}
		p.Put(used, true)
		p.Put(late, true)
		if !isClosed(used) || !isClosed(late) || p.Idle() != 0 {
			t.Error("got connections that are kept, want none after Close")
		}
	})
}

// The server may have closed a connection in the meantime, or the caller may say that it is of no use.
func TestUnusable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, key := New(10), Key{}
		bad, dead := dial(t, key), dial(t, key)
		p.Put(bad, false)
		p.Put(dead, true)
		_ = dead.Close()
		if !isClosed(bad) || p.Get(key) != nil || p.Idle() != 0 {
			t.Error("got a connection, want none")
		}
	})
}

// Requests that would make different connections share none.
func TestKeys(t *testing.T) {
	p := New(10)
	defer p.Close()
	key := Key{Scheme: "http", Address: "a:80"}
	p.Put(dial(t, key), true)
	for _, other := range []Key{
		{Scheme: "https", Address: "a:80"}, {Scheme: "http", Address: "a:81"},
		{Scheme: "http", Address: "a:80", Guarded: true}, {Scheme: "http", Address: "a:80", Proxy: "http://me:pw@p:1"},
		{Scheme: "http", Address: "a:80", Insecure: true}, {Scheme: "http", Address: "a:80", Cert: "c"},
	} {
		if p.Get(other) != nil {
			t.Errorf("got the connection for %+v, want none", other)
		}
	}
	if p.Get(key) == nil {
		t.Error("got none, want the connection")
	}
}
