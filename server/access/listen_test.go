package access

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

func TestCheckListen(t *testing.T) {
	type given struct{ tokens, clientCA, tls, insecure bool }
	tests := []struct {
		address string
		given   given
		want    string // part of the error, "" for none
	}{
		{"127.0.0.1:7470", given{}, ""},
		{"localhost:7470", given{}, ""},
		{"[::1]:7470", given{}, ""},
		{"127.0.0.1:0", given{}, ""},
		{"unix:/run/retry.sock", given{}, ""},
		{"127.0.0.1:7470", given{tokens: true}, ""},
		{":7470", given{},
			"--listen :7470: anybody who reaches this address could use the API\nhint: give --token-file FILE"},
		{"0.0.0.0:7470", given{}, "anybody"},
		{"[::]:7470", given{}, "anybody"},
		{"192.0.2.1:7470", given{tls: true}, "anybody"},
		{"retry.example:7470", given{insecure: true}, "anybody"},
		{"localhost.evil.example:7470", given{}, "anybody"},
		{"0.0.0.0:7470", given{tokens: true},
			"without TLS, tokens and requests can be read on their way\nhint: give --tls-cert and"},
		{"0.0.0.0:7470", given{tokens: true, insecure: true}, ""},
		{"0.0.0.0:7470", given{tokens: true, tls: true}, ""},
		{"0.0.0.0:7470", given{clientCA: true, tls: true}, ""},
		{"0.0.0.0:7470", given{clientCA: true, insecure: true}, "--client-ca without TLS checks nothing\nhint: "},
		{"127.0.0.1:7470", given{clientCA: true}, "--client-ca without TLS"},
		{"unix:", given{}, "no path\nhint: "},
		{"7470", given{}, "want host:port\nhint: give 127.0.0.1:7470"},
		{"127.0.0.1", given{}, "want host:port"},
		{"127.0.0.1:70000", given{}, "want host:port"},
		{"", given{}, "want host:port"},
	}
	for _, tt := range tests {
		err := CheckListen(tt.address, tt.given.tokens, tt.given.clientCA, tt.given.tls, tt.given.insecure)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: got %v, want %q", tt.address, tt.given, err, tt.want)
		}
	}
}

func TestCheckExec(t *testing.T) {
	tests := []struct {
		address string
		tokens  bool
		want    bool
	}{{"unix:/run/x", false, true}, {"127.0.0.1:7470", true, true}, {"127.0.0.1:7470", false, false}}
	for _, tt := range tests {
		if err := CheckExec(tt.address, tt.tokens); (err == nil) != tt.want {
			t.Errorf("%s, tokens %v: got %v, want it allowed: %v", tt.address, tt.tokens, err, tt.want)
		}
	}
}

func TestListenOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Listen("unix:" + path)
	testkit.Must(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	if _, err := Listen("unix:" + path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second: got %v, want that the address is in use", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as kill -9 leaves it
	testkit.Must(t, first.Close())
	second, err := Listen("unix:" + path)
	if err != nil {
		t.Fatalf("after a dead server: got %v, want the socket replaced", err)
	}
	testkit.Must(t, second.Close())
	testkit.Write(t, path, "precious")
	if _, err := Listen("unix:" + path); err == nil || testkit.Contents(t, path) != "precious" {
		t.Errorf("a file: got %v, want it kept and an error", err)
	}
	tcp, err := Listen("127.0.0.1:0")
	testkit.Must(t, err)
	testkit.Must(t, tcp.Close())
}

// Of servers that start at once where a dead one has left its socket, one gets it, and the others do not take it away.
func TestListenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for range 200 {
		dead, err := Listen("unix:" + path)
		testkit.Must(t, err)
		dead.(*net.UnixListener).SetUnlinkOnClose(false)
		testkit.Must(t, dead.Close())
		var group sync.WaitGroup
		var listeners [4]net.Listener
		for i := range listeners {
			group.Go(func() {
				var err error
				if listeners[i], err = Listen("unix:" + path); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
					t.Errorf("got %v, want that the address is in use", err)
				}
			})
		}
		group.Wait()
		got := slices.DeleteFunc(listeners[:], func(l net.Listener) bool { return l == nil })
		c, err := net.Dial("unix", path)
		if len(got) != 1 || err != nil {
			t.Fatalf("got %d servers, and %v from a client; want one that replies", len(got), err)
		}
		testkit.Must(t, errors.Join(c.Close(), got[0].Close()))
	}
}

// The connection beyond the bound waits until another one ends, and a close ends the wait.
func TestBound(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	l := Bound(inner, 2)
	accepted := make(chan net.Conn)
	failed := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		testkit.Must(t, err)
		defer func() { _ = c.Close() }()
	}
	first := <-accepted
	<-accepted
	testkit.Eventually(t, "both slots are taken", func() bool { return len(l.(*bounded).slots) == 2 })
	select {
	case <-accepted:
		t.Fatal("got a third connection, want it to wait")
	default:
	}
	testkit.Must(t, first.Close())
	_ = first.Close() // a second close frees no second slot
	third := <-accepted
	if got := len(l.(*bounded).slots); got != 2 {
		t.Errorf("got %d slots taken, want 2", got)
	}
	testkit.Must(t, l.Close())
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	_ = third.Close()
}

// net/http ends its half of a connection first, so that a client that is still sending gets the reply, not a reset.
func TestBoundEndsItsHalfFirst(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	client, err := net.Dial("tcp", inner.Addr().String())
	testkit.Must(t, err)
	server, err := Bound(inner, 1).Accept()
	testkit.Must(t, err)
	testkit.Must(t, server.(interface{ CloseWrite() error }).CloseWrite())
	if reply, err := io.ReadAll(client); err != nil || len(reply) != 0 {
		t.Errorf("client: got %q, %v, want the end", reply, err)
	}
	_, err = io.WriteString(client, "rest")
	testkit.Must(t, err, client.Close())
	if rest, err := io.ReadAll(server); err != nil || string(rest) != "rest" {
		t.Errorf("server: got %q, %v, want the rest", rest, err)
	}
	testkit.Must(t, server.Close(), inner.Close())
}
