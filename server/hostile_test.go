package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/blobs"
)

func TestEveryMistakeAtOnce(t *testing.T) {
	g := newRig(t)
	got := g.ask("POST", "/retry-tasks", `{"targetURL": "x", "method": "post", "headers": {"Host": "a",
		"X-A": "b\u0001c", "": "x",
		"X-B": "{env:HOME}"}, "body": "a", "bodyJson": 1, "policyId": "nothing", "idempotencyKey": " k", "delayMs": -1,
		"timeoutMs": "1s", "onExhausted": {"targetUrl": 3}, "tags": ["a", "a"], "followRedirects": 11, "command2": []}`).
		wants(422).pointers()
	for _, want := range []string{
		"/targetUrl the field is missing", "/targetURL unknown field", "/method methods are told apart by case",
		"/headers/Host the header Host follows", "/headers/X-A the value holds a control character",
		"/headers/ invalid header name", "/headers/X-B the variable HOME may not be named",
		"/bodyJson body and bodyJson both", "/policyId unknown policy", "/idempotencyKey the key begins or ends",
		"/delayMs want a whole number", "/timeoutMs want a whole number", "/onExhausted/targetUrl want a string",
		"/tags/1 the tag is there twice", "/followRedirects want a whole number", "/command2 unknown field",
	} {
		if !slices.ContainsFunc(got, func(m string) bool { return strings.HasPrefix(m, want) }) {
			t.Errorf("got no mistake %q", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
	if n := g.ask("GET", "/retry-tasks", "").json()["tasks"].([]any); len(n) != 0 {
		t.Errorf("got %d tasks, want none made", len(n))
	}
}

// Whoever asks for a signature does not learn later that there was none.
func TestNoSecretToSignWith(t *testing.T) {
	g := newRig(t, func(c *Config) { c.NoSecrets = true })
	got := g.ask("POST", "/retry-tasks", `{"targetUrl": "https://example.org/", "sign": true,
		"onExhausted": {"targetUrl": "https://example.org/", "sign": true}}`).wants(422).pointers()
	want := []string{"/onExhausted/sign this server has no secret", "/sign this server has no secret"}
	slices.Sort(got)
	if len(got) != 2 || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("got %q, want %q", got, want)
	}
	g.create(`{"targetUrl": "https://example.org/", "sign": false}`)
}

func TestABlobThatStalls(t *testing.T) {
	store, err := blobs.New(t.TempDir() + "/blobs")
	testkit.Must(t, err)
	g := newRig(t, func(c *Config) { c.Blobs = store })
	for body, want := range map[io.Reader]int{
		iotest.ErrReader(os.ErrDeadlineExceeded): http.StatusBadRequest, strings.NewReader("x"): http.StatusCreated,
	} {
		w := httptest.NewRecorder()
		g.server.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/blobs/"+blobs.Hash([]byte("x")), body))
		if w.Code != want {
			t.Errorf("got %d: %s, want %d", w.Code, w.Body, want)
		}
	}
}

// A body that breaks off or whose chunks are wrong is the client's mistake: the store is sound.
func TestABrokenBlob(t *testing.T) {
	store, err := blobs.New(t.TempDir() + "/blobs")
	testkit.Must(t, err)
	g := newRig(t, func(c *Config) { c.Blobs = store })
	for _, chunks := range []string{"2\r\nab\r\nzz\r\n", "2\r\nabcd\r\n0\r\n\r\n", "fffffffffffffffff\r\n"} {
		client, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		testkit.Must(t, err)
		_, err = fmt.Fprintf(client, "PUT /blobs/%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%s",
			blobs.Hash([]byte("ab")), chunks)
		testkit.Must(t, err)
		reply, err := http.ReadResponse(bufio.NewReader(client), nil)
		testkit.Must(t, err)
		if reply.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: got %s, want 400", chunks, reply.Status)
		}
		_ = client.Close()
	}
	g.ask("GET", "/readyz", "").wants(200)
}

func TestBatchIsAllOrNothing(t *testing.T) {
	g := newRig(t)
	one := `{"targetUrl": "https://example.org/"}`
	bad := g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+one+`,`+one+`,`+one+`, {"targetUrl": "ftp://x/"}]}`).
		wants(422)
	if got := bad.pointers(); len(got) != 1 || !strings.HasPrefix(got[0], "/tasks/3/targetUrl ") {
		t.Errorf("got %q, want /tasks/3/targetUrl alone", got)
	}
	keyed := `{"targetUrl": "https://example.org/", "idempotencyKey": "k", "body": "BODY"}`
	g.create(keyed)
	reused := g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+one+`,`+strings.Replace(keyed, "BODY", "other",
		1)+`]}`).wants(422)
	if got := reused.pointers(); !strings.HasPrefix(got[0], "/tasks/1/idempotencyKey ") {
		t.Errorf("got %q, want /tasks/1/idempotencyKey", got)
	}
	own := strings.ReplaceAll(keyed, `"k"`, `"own"`)
	other := strings.Replace(own, "BODY", "other", 1)
	both := g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+one+`,`+own+`,`+other+`]}`).wants(422)
	const names = "/tasks/2/idempotencyKey the idempotency key belongs to /tasks/1, which is another request"
	if got := both.pointers(); len(got) != 1 || !strings.HasPrefix(got[0], names) {
		t.Errorf("got %q, want %q", got, names)
	}
	if n := g.ask("GET", "/retry-tasks", "").json()["tasks"].([]any); len(n) != 1 {
		t.Errorf("got %d tasks, want the first alone", len(n))
	}
	made := g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+one+`,`+keyed+`]}`).wants(201).json()["tasks"].([]any)
	if len(made) != 2 || made[1].(map[string]any)["idempotencyKey"] != "k" {
		t.Errorf("got %v, want two in order", made)
	}
	g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+keyed+`]}`).wants(200)
	g.ask("POST", "/retry-tasks:batch", `{"tasks": []}`).wants(422)
	long := g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+strings.Repeat(one+",", 1000)+one+`]}`).wants(422).pointers()
	if want := "/tasks want at most 1000 elements, got 1001"; len(long) != 1 || long[0] != want {
		t.Errorf("got %q, want %q alone", long[:min(3, len(long))], want)
	}
	g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+one+`]}`, "Idempotency-Key", "k").wants(400)
}

// One mistake is told once, and in words of the API.
func TestMistakesAreToldOnce(t *testing.T) {
	g := newRig(t, func(c *Config) {
		c.Authorize = func(*http.Request) (Grant, error) { return Grant{true, true, true}, nil }
		c.AllowExec = true
	})
	for body, want := range map[string]string{
		`{"targetUrl": "https://example.org/", "bodyRef": "sha256:ab"}`: "/bodyRef want sha256: and 64 digits",
		`{"command": "id"}`:                "/command want a list, got a string",
		`{"targetUrl": "ftp://host/file"}`: `/targetUrl no task has the scheme "ftp"`,
	} {
		got := g.ask("POST", "/retry-tasks", body).wants(422).pointers()
		if len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: got %q, want %q alone", body, got, want)
		}
	}
}

func TestUnknownCalls(t *testing.T) {
	g := newRig(t)
	for _, tt := range []struct {
		method, path string
		status       int
		hint, allow  string
	}{
		{method: "GET", path: "/retry-task", status: 404, hint: "did you mean /retry-tasks?"},
		{method: "GET", path: "/retry-tasks/1/attempt", status: 404, hint: "did you mean /retry-tasks/{taskId}/attempts?"},
		{method: "GET", path: "/nothing/like/it", status: 404, hint: "/openapi.json lists all calls"},
		{method: "PUT", path: "/retry-tasks", status: 405, allow: "GET, HEAD, POST, OPTIONS"},
		{method: "OPTIONS", path: "/retry-tasks/1", status: 204, allow: "GET, HEAD, PATCH, DELETE, OPTIONS"},
		{method: "TRACE", path: "/retry-tasks:batch", status: 405, allow: "POST, OPTIONS"},
	} {
		a := g.ask(tt.method, tt.path, "").wants(tt.status)
		if a.header.Get("Allow") != tt.allow {
			t.Errorf("%s: got Allow %q, want %q", a.asked, a.header.Get("Allow"), tt.allow)
		}
		if tt.status != 204 && tt.hint != "" && a.problem().Hint != tt.hint {
			t.Errorf("%s: got hint %q, want %q", a.asked, a.problem().Hint, tt.hint)
		}
	}
}

func TestBodiesThatAreNoJSON(t *testing.T) {
	g := newRig(t)
	g.ask("POST", "/retry-tasks", "{").wants(400)
	g.ask("POST", "/retry-tasks", "a=b", "Content-Type", "application/x-www-form-urlencoded").wants(415)
	g.ask("POST", "/retry-tasks", hook, "Content-Encoding", "gzip").wants(415)
	g.ask("POST", "/retry-tasks", `{"body": "`+strings.Repeat("x", 1<<20)+`"}`).wants(413)
	g.ask("POST", "/retry-tasks", hook, "Content-Type", "Application/JSON; charset=utf-8").wants(201)
	g.ask("GET", "/retry-tasks?cursor=garbage", "").wants(400)
	g.ask("GET", "/retry-tasks?cursor=eyJuIjoxfQ", "").wants(400)
	g.ask("GET", "/retry-tasks?status=PENDNG", "").wants(400)
	g.ask("GET", "/retry-tasks?limit=201", "").wants(400)
	g.ask("GET", "/retry-tasks?stat=PENDING", "").wants(400)
}

// Every call needs its scope; probes need none.
func TestScopes(t *testing.T) {
	var who Grant
	g := newRig(t, func(c *Config) {
		c.Authorize = func(*http.Request) (Grant, error) { return who, nil }
		c.AllowExec = true
	})
	command := `{"command": ["true"]}`
	for _, tt := range []struct {
		grant                   Grant
		get, post, exec, health int
	}{
		{Grant{}, 403, 403, 403, 200},
		{Grant{Read: true}, 200, 403, 403, 200},
		{Grant{Read: true, Write: true}, 200, 201, 422, 200},
		{Grant{Read: true, Write: true, Exec: true}, 200, 201, 201, 200},
	} {
		who = tt.grant
		g.ask("GET", "/retry-tasks", "").wants(tt.get)
		g.ask("POST", "/retry-tasks", hook).wants(tt.post)
		g.ask("POST", "/retry-tasks", command).wants(tt.exec)
		g.ask("GET", "/readyz", "").wants(tt.health)
	}
}

// Whatever a query says, it is answered: with a list, or with what is wrong.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"status=PENDING,FAILED&limit=3", "cursor=eyJuIjoxLCJmIjoiMSJ9", "since=1&until=9999-12-31T00:00:00Z",
		"host=[::1]:80&tag=%00",
		"a;b=%zz", "partition=&error=status+503&policyId=%ff",
	} {
		f.Add(query)
	}
	g := newRig(f)
	g.create(hook)
	h := g.server.Handler()
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/retry-tasks", "/dead-letters"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
				t.Errorf("%s?%s: got %d %s", path, query, w.Code, w.Body)
			}
		}
	})
}
