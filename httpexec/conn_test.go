package httpexec

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/10f93571/retry/task"
)

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

// A server may refuse a body and close before it has read that. Its reply is not lost, however the race between the two goes.
func TestEarlyReplyAndClosed(t *testing.T) {
	for range 20 {
		s := serve(t, func(c *wire) {
			c.header(&bytes.Buffer{})
			c.send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nless")
		})
		o := execute(t, sending(t, "POST", s.url("http"), func(e *sender) { e.carry(data(strings.Repeat("x", 1<<20))) }))
		if o.Exit != 22 || o.Reply.Status != 413 {
			t.Fatalf("%+v, %+v", o, o.Reply)
		}
	}
}

// Without a reply it is a broken connection after all.
func TestResetInTheMiddleOfABody(t *testing.T) {
	s := serve(t, func(c *wire) {
		c.header(&bytes.Buffer{})
		c.reset()
	})
	o := execute(t, sending(t, "POST", s.url("http"), func(e *sender) { e.carry(data(strings.Repeat("x", 16<<20))) }))
	waiting := strings.HasPrefix(o.Message, "wait for the reply: ")
	if o.Error != task.ErrorReset || describe(o.Reply.Default) != "ambiguous" || o.Reply.Written != 1 || !waiting {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}

// broken is a connection whose writes fail from the one on that is named, and that has nothing to read.
type broken struct {
	net.Conn
	good int
}

func (c *broken) Read([]byte) (int, error) { return 0, io.EOF }

func (c *broken) Write(p []byte) (int, error) {
	if c.good--; c.good < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// A write fails before the request is begun, and not after it; then it is reading that tells why.
func TestConnFailsOnce(t *testing.T) {
	tests := []struct {
		good                           int
		handshake, first, second, read error
	}{
		{0, syscall.EPIPE, syscall.EPIPE, syscall.EPIPE, io.EOF},
		{1, nil, syscall.EPIPE, syscall.EPIPE, io.EOF},
		{2, nil, nil, nil, syscall.EPIPE},
		{3, nil, nil, nil, io.EOF},
	}
	for _, tt := range tests {
		c := newWatch().guard(&broken{good: tt.good})
		write := func() error {
			_, err := c.Write([]byte("text"))
			return err
		}
		handshake := write()
		c.ready()
		first, second := write(), write()
		_, read := c.Read(nil)
		got, want := []error{handshake, first, second, read}, []error{tt.handshake, tt.first, tt.second, tt.read}
		if !slices.Equal(got, want) {
			t.Errorf("after %d good writes: %v, want %v", tt.good, got, want)
		}
	}
}
