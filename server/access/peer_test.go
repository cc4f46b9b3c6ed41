//go:build linux || darwin || freebsd

package access

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// serveSocket starts a server on a unix socket, and returns its path.
func serveSocket(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := Listen("unix:" + path)
	testkit.Must(t, err)
	server := NewServer(New(Config{}).Handler(whoAmI))
	go func() { _ = server.Serve(Bound(l, 10)) }()
	t.Cleanup(func() { _ = server.Close() })
	return path
}

func over(dial func() (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}}
}

// Our own user may do everything over the socket, under any Host.
func TestPeer(t *testing.T) {
	path := serveSocket(t)
	client := over(func() (net.Conn, error) { return net.Dial("unix", path) })
	status, body := ask(t, client, http.MethodPost, "http://retry/", "{}", "Content-Type: application/json")
	if status != 200 || !strings.Contains(body, " admin 2 ") {
		t.Errorf("got %d %q, want scope admin", status, body)
	}
	if status, body := ask(t, client, http.MethodPost, "http://retry/", "{}", "Content-Type: text/plain"); status != 415 {
		t.Errorf("got %d %q, want 415", status, body)
	}
}

func TestPeerIdentity(t *testing.T) {
	tests := []struct {
		name string
		peer peer
		want bool
	}{
		{"we", peer{uid: os.Geteuid()}, true},
		{"root", peer{uid: 0}, true},
		{"another user", peer{uid: os.Geteuid() + 4711}, false},
		{"unknown", peer{uid: os.Geteuid(), err: errors.New("no such option")}, false},
	}
	for _, tt := range tests {
		got, err := tt.peer.identity()
		if (err == nil) != tt.want || (got.Scope == Admin) != tt.want {
			t.Errorf("%s: got %+v, %v, want it let in: %v", tt.name, got, err, tt.want)
		}
	}
}
