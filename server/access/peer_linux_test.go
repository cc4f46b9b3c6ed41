package access

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// Another user that could open the socket (somebody changed its mode) is refused by what the kernel says of it.
func TestPeerOfAnotherUser(t *testing.T) {
	testkit.NeedsRoot(t)
	path := serveSocket(t)
	testkit.Must(t, os.Chmod(path, 0o666))
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		testkit.Must(t, os.Chmod(dir, 0o755))
	}
	client := over(func() (net.Conn, error) {
		return testkit.DialAsNobody(func() (net.Conn, error) { return net.Dial("unix", path) })
	})
	status, body := ask(t, client, http.MethodGet, "http://localhost/", "")
	if status != 403 || !strings.Contains(body, "the user 65534 may not use this socket") {
		t.Errorf("got %d %q, want 403", status, body)
	}
}
