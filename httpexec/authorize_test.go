package httpexec

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/10f93571/retry/task"
)

// answer computes the answer to a challenge as RFC 7616, section 3.4.1, says.
func answer(h func() hash.Hash, user, realm, password, method, uri, nonce, count, own string) string {
	sum := func(text string) string {
		s := h()
		_, _ = s.Write([]byte(text))
		return fmt.Sprintf("%x", s.Sum(nil))
	}
	return sum(sum(user+":"+realm+":"+password) + ":" + nonce + ":" + count + ":" + own + ":auth:" + sum(method+":"+uri))
}

var fieldOf = regexp.MustCompile(`(\w+)="?([^",\r]*)"?`)

// checkAnswer fails unless a request has the right answer.
func checkAnswer(t *testing.T, request string, h func() hash.Hash, method, nonce, count string) {
	t.Helper()
	fields := map[string]string{}
	_, line, _ := strings.Cut(request, "Authorization: Digest ")
	line, _, _ = strings.Cut(line, "\n")
	for _, f := range fieldOf.FindAllStringSubmatch(line, -1) {
		fields[f[1]] = f[2]
	}
	want := answer(h, "me", "the realm", "p:w", method, "/path?q=1", nonce, count, fields["cnonce"])
	if fields["response"] != want || fields["nc"] != count || fields["uri"] != "/path?q=1" || fields["opaque"] != "o" {
		t.Errorf("got %q, want the response %s with the count %s", line, want, count)
	}
}

func challenges(algorithm, nonce string) script {
	return replies("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nWWW-Authenticate: Digest "+
		"realm=\"the realm\", qop=\"auth-int, auth\", nonce=\"%s\", opaque=\"o\", algorithm=%s\r\nContent-Length: 0\r\n\r\n",
		nonce, algorithm)
}

// The first attempt is challenged and needs two requests, which the journal counts. The next one answers the same
// challenge at once, and a nonce that the server has forgotten is replaced.
func TestDigest(t *testing.T) {
	for algorithm, h := range map[string]func() hash.Hash{"MD5": md5.New, "SHA-256": sha256.New} {
		t.Run(algorithm, func(t *testing.T) {
			const busy, ok = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
			s := serve(t, challenges(algorithm, "n1"), replies(busy), replies(busy), challenges(algorithm, "n2"), replies(ok))
			c := newClient(t, s.url("http"), func(c *client) {
				c.Request.Method, c.Request.User, c.Request.Digest, c.Request.Body = "PUT", "me:p:w", true, aPart("body")
			})
			for i, want := range []struct{ status, written int }{{503, 2}, {503, 1}, {200, 2}} {
				o := c.attempt()
				if o.Reply.Status != want.status || o.Reply.Written != want.written {
					t.Errorf("attempt %d: got status %d after %d requests, want %d after %d", i+1, o.Reply.Status, o.Reply.Written,
						want.status, want.written)
				}
				if err := c.flush(task.Pending); err != nil {
					t.Error(err)
				}
			}
			s.stop()
			for i, want := range []struct{ nonce, count string }{{}, {"n1", "00000001"}, {"n1", "00000002"},
				{"n1", "00000003"}, {"n2", "00000001"}} {
				if !strings.HasSuffix(s.requests[i], "body") {
					t.Errorf("request %d: got %q, want the body", i+1, s.requests[i])
				}
				if want.nonce == "" && strings.Contains(s.requests[i], "Authorization") {
					t.Errorf("request %d: got %q, want no password before it is asked for", i+1, s.requests[i])
				} else if want.nonce != "" {
					checkAnswer(t, s.requests[i], h, http.MethodPut, want.nonce, want.count)
				}
			}
		})
	}
}

// A wrong password is asked for once. A POST that got no answer to its second request may have taken effect.
func TestDigestThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		second    script
		status    int
		ambiguous bool
	}{
		"a wrong password": {second: challenges("MD5", "n2"), status: 401},
		"no reply":         {second: closes(""), ambiguous: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, challenges("MD5", "n1"), tt.second)
			c := newClient(t, s.url("http"), func(c *client) {
				c.Request.Method, c.Request.User, c.Request.Digest, c.Request.Body = "POST", "me:pw", true, aPart("body")
			})
			o := c.attempt()
			if got := o.Reply; got.Status != tt.status || got.Written != 2 || got.Default.Ambiguous != tt.ambiguous {
				t.Errorf("got status %d after %d requests, ambiguous %v, want %d after 2, %v", got.Status, got.Written,
					got.Default.Ambiguous, tt.status, tt.ambiguous)
			}
		})
	}
}
