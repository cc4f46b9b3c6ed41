package httpexec

import (
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
)

// conn is a connection that does not read before something was written. A server that speaks first is none of HTTP; it would be that
// or a broken connection, as the race goes, and net/http would log it.
type conn struct {
	net.Conn
	heard  *recorder     // nil: nobody asks for what is read
	spoken chan struct{} // closed when something was written, or when it is over
	once   sync.Once
	wrote  atomic.Int64
	read   atomic.Int64
	before atomic.Int64          // how much was written before the request
	broke  atomic.Pointer[error] // how writing the rest of a request failed
	ended  atomic.Pointer[error] // how reading ended
}

func (w *watch) guard(c net.Conn) *conn {
	w.conn = &conn{Conn: c, heard: w.plain, spoken: make(chan struct{})}
	w.conn.before.Store(math.MaxInt64)
	return w.conn
}

// ready notes that what is written from now on is the request.
func (c *conn) ready() { c.before.Store(c.wrote.Load()) }

// begun reports whether something of the request was written.
func (c *conn) begun() bool { return c.wrote.Load() > c.before.Load() }

func (c *conn) Read(p []byte) (int, error) {
	<-c.spoken
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	c.heard.hear(p[:n])
	if broke := c.broke.Load(); broke != nil && errors.Is(err, io.EOF) {
		err = *broke // the system tells only once that a connection was reset
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.ended.Store(&err)
	}
	return n, err
}

// Write does not fail once a part of the request is written: a server that refuses a body may reply and close before it has read that, and
// net/http would not look at the reply any more. Where there is none, reading fails.
func (c *conn) Write(p []byte) (int, error) {
	c.wrote.Add(int64(len(p))) // before: the reply may be here before Write returns
	n, err := c.Conn.Write(p)
	c.wrote.Add(int64(n - len(p)))
	c.once.Do(func() { close(c.spoken) })
	if err != nil && c.begun() && !errors.Is(err, net.ErrClosed) {
		c.broke.Store(&err)
		return len(p), nil
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.spoken) })
	return c.Conn.Close()
}
