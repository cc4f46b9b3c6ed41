//go:build linux || darwin || freebsd

package access

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
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
		uid  int
		err  error
		want bool
	}{
		{"we", os.Geteuid(), nil, true},
		{"root", 0, nil, true},
		{"another user", os.Geteuid() + 4711, nil, false},
		{"unknown", os.Geteuid(), errors.New("no such option"), false},
	}
	for _, tt := range tests {
		for unix, scope := range map[bool]Scope{true: Admin, false: Write} {
			got, err := peer{unix: unix, uid: func() (int, error) { return tt.uid, tt.err }}.identity()
			if (err == nil) != tt.want || (got.Scope == scope) != tt.want {
				t.Errorf("%s, unix %v: got %+v, %v, want it let in: %v", tt.name, unix, got, err, tt.want)
			}
			hint := "hint: a server with --token-file FILE takes tokens, and with --listen unix:PATH calls of its own user"
			if err != nil && !unix && !strings.Contains(err.Error(), hint) {
				t.Errorf("%s: got %v, want a hint of tokens and the unix socket", tt.name, err)
			}
		}
	}
}

// A request with a token is not held up by the question who is at the other end.
func TestTokensAskNoKernel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ci", Write)
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r = r.WithContext(context.WithValue(r.Context(), peerKey{}, peer{uid: func() (int, error) {
		t.Error("got the kernel asked, want the token alone looked at")
		return 0, nil
	}}))
	for header, want := range map[string]int{"Bearer " + token: 200, "Bearer rtk_00_x": 401} {
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		New(Config{Tokens: open(t, file)}).Handler(whoAmI).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", header[:10], w.Code, want)
		}
	}
}
