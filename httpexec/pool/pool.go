// Package pool keeps connections to servers for a moment, so that the next request to the same server needs no new one.
package pool

import (
	"container/list"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// idleFor is how long a connection is kept without a request. Servers wait for 5 seconds and more before they close
	// one, so that a request seldom meets a closing connection.
	idleFor = 2 * time.Second
	// usedFor is how long a connection is used at all: then names are resolved and certificates are read again.
	usedFor = time.Minute
)

// Key says which requests may share a connection: those that would make the same one.
type Key struct {
	Scheme, Address      string // host:port in lower case
	Proxy                string // with user and password; empty for none
	Socket               string
	Resolved             string // what the user gave instead of the resolver
	CACert, Cert, Secret string // files
	Insecure             bool
	HTTP1                bool
	Compressed           bool
	Guarded              bool // the address was judged when the connection was made
	Direct               bool // small requests are sent without the goroutines of net/http
}

// Client sends requests over one connection, as *http.ClientConn does.
type Client interface {
	http.RoundTripper
	Reserve() error
	Available() int
	Err() error
	Close() error
}

// Conn is a connection. Over HTTP/1.1 it carries one request at a time, over HTTP/2 as many as the server allows.
type Conn struct {
	Client
	Key   Key
	HTTP2 bool
	Raw   syscall.RawConn // of the socket; nil: it is not looked at
	Made  time.Time
	Of    any // what the user of the pool knows of it

	users   int       // requests under way
	idle    time.Time // since when there are none
	place   *list.Element
	retired bool // no further request is sent over it
}

// Pool keeps connections. It is safe for concurrent use.
type Pool struct {
	most int

	mutex  sync.Mutex
	conns  map[Key][]*Conn // that a request may use
	idle   *list.List      // of these, the ones without a request, the one that is idle for the longest time first
	timer  *time.Timer     // closes them
	closed bool
}

// New returns a pool that keeps at most that many connections without a request.
func New(most int) *Pool {
	return &Pool{most: most, conns: map[Key][]*Conn{}, idle: list.New()}
}

// Get returns a kept connection that has room for one more request, which is reserved; nil where there is none. The
// caller gives it back with Put.
func (p *Pool) Get(key Key) *Conn {
	for {
		c, dead := p.take(key)
		for _, d := range dead {
			_ = d.Close()
		}
		if c == nil || c.HTTP2 || c.Err() == nil && isOpen(c.Raw) {
			return c
		}
		_ = c.Close()
	}
}

// take finds a connection, the one that was used last. It returns those that can no longer be used, too.
func (p *Pool) take(key Key) (c *Conn, dead []*Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	all := p.conns[key]
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		stale := time.Since(c.Made) >= usedFor || c.users == 0 && time.Since(c.idle) >= idleFor
		if stale || c.HTTP2 && c.Reserve() != nil {
			if stale || c.users == 0 {
				p.retire(c)
			}
			if c.users == 0 {
				dead = append(dead, c)
			}
			continue
		}
		c.users++
		p.wake(c)
		if !c.HTTP2 {
			p.unlist(c)
		}
		return c, dead
	}
	return nil, dead
}

// Share has others use a new connection of HTTP/2 beside the caller, who gives it back with Put all the same. The first
// reply has to be there: until then it is not known how many requests the server allows, and it refuses the others.
func (p *Pool) Share(c *Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if c.users > 0 { // it is shared already
		return
	}
	c.users = 1
	if !p.closed {
		p.conns[c.Key] = append(p.conns[c.Key], c)
	}
}

// Put gives a connection back, a new one too. Where it cannot carry another request, it is closed as soon as nobody
// uses it.
func (p *Pool) Put(c *Conn, usable bool) {
	var unused []*Conn
	p.mutex.Lock()
	c.users = max(0, c.users-1)
	if !usable || p.closed {
		p.retire(c)
	}
	switch {
	case c.users > 0:
	case c.retired:
		unused = append(unused, c)
	default:
		unused = p.rest(c)
	}
	p.mutex.Unlock()
	for _, u := range unused {
		_ = u.Close()
	}
}

// rest keeps a connection without a request, and returns another one where there are too many.
func (p *Pool) rest(c *Conn) (over []*Conn) {
	if !c.HTTP2 || !slices.Contains(p.conns[c.Key], c) {
		p.conns[c.Key] = append(p.conns[c.Key], c)
	}
	c.idle = time.Now()
	c.place = p.idle.PushBack(c)
	if p.idle.Len() > p.most {
		oldest := p.idle.Front().Value.(*Conn)
		p.retire(oldest)
		over = append(over, oldest)
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(idleFor, p.expire)
	}
	return over
}

// expire closes the connections that were idle for too long, and comes back for the others.
func (p *Pool) expire() {
	var old []*Conn
	p.mutex.Lock()
	p.timer = nil
	for e := p.idle.Front(); e != nil && !p.closed; e = p.idle.Front() {
		c := e.Value.(*Conn)
		if left := idleFor - time.Since(c.idle); left > 0 {
			p.timer = time.AfterFunc(left, p.expire)
			break
		}
		p.retire(c)
		old = append(old, c)
	}
	p.mutex.Unlock()
	for _, c := range old {
		_ = c.Close()
	}
}

// Close closes the connections without a request, and the others when their requests are over.
func (p *Pool) Close() {
	p.mutex.Lock()
	p.closed = true
	var idle []*Conn
	for _, all := range p.conns {
		for _, c := range slices.Clone(all) {
			if p.retire(c); c.users == 0 {
				idle = append(idle, c)
			}
		}
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mutex.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}

// Idle returns how many connections are kept without a request.
func (p *Pool) Idle() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.idle.Len()
}

// retire has no further request use a connection.
func (p *Pool) retire(c *Conn) {
	c.retired = true
	p.wake(c)
	p.unlist(c)
}

func (p *Pool) wake(c *Conn) {
	if c.place != nil {
		p.idle.Remove(c.place)
		c.place = nil
	}
}

func (p *Pool) unlist(c *Conn) {
	all := p.conns[c.Key]
	i := len(all) - 1
	for i >= 0 && all[i] != c { // most often it is the last one
		i--
	}
	switch {
	case i < 0:
	case len(all) == 1:
		delete(p.conns, c.Key)
	default:
		p.conns[c.Key] = slices.Delete(all, i, i+1)
	}
}
