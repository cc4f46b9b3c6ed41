package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// Of 64 equal requests at once, one makes the task.
func TestEqualRequestsAtOnce(t *testing.T) {
	g := newRig(t)
	var made, replayed atomic.Int32
	var ids sync.Map
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			a := g.ask("POST", "/retry-tasks", `{"targetUrl": "https://example.org/", "idempotencyKey": "one", "bodyJson": 1}`)
			switch a.status {
			case 201:
				made.Add(1)
			case 200:
				replayed.Add(1)
			}
			ids.Store(a.json()["taskId"], true)
		})
	}
	group.Wait()
	count := 0
	ids.Range(func(any, any) bool { count++; return true })
	if made.Load() != 1 || replayed.Load() != 63 || count != 1 {
		t.Errorf("got %d made, %d replayed, %d ids, want 1, 63, 1", made.Load(), replayed.Load(), count)
	}
}

func withBlobs(t testing.TB) (*blobs.Store, func(*Config)) {
	store, err := blobs.New(t.TempDir() + "/blobs")
	testkit.Must(t, err)
	return store, func(c *Config) { c.Blobs = store }
}

func TestBlobs(t *testing.T) {
	store, on := withBlobs(t)
	g := newRig(t, on, func(c *Config) { c.Limits.Blob = 200_000 })
	content := strings.Repeat("0123456789", 10_000)
	hash := blobs.Hash([]byte(content))
	path := "/blobs/" + hash
	g.ask("GET", path, "").wants(404)
	g.ask("POST", "/retry-tasks", `{"targetUrl": "https://example.org/", "bodyRef": "sha256:`+hash+`"}`).wants(422)
	made := g.ask("PUT", path, content, "Content-Type", "application/x-anything").wants(201).json()
	if made["bodyRef"] != "sha256:"+hash || sprint(made["size"]) != "100000" {
		t.Errorf("got %v, want the reference and the size", made)
	}
	g.ask("PUT", path, content, "Content-Type", "text/plain").wants(200)
	g.ask("PUT", path, content+"x", "Content-Type", "text/plain").wants(422)
	g.ask("PUT", path, content+content+"x", "Content-Type", "text/plain").wants(413)
	g.ask("PUT", "/blobs/../x", content, "Content-Type", "text/plain").wants(404)
	g.ask("PUT", "/blobs/x", content, "Content-Type", "text/plain").wants(400)
	got := g.ask("GET", path, "").wants(200)
	if got.body != content || got.header.Get("Content-Disposition") != "attachment" {
		t.Errorf("got %d bytes, %v", len(got.body), got.header)
	}
	if head := g.ask("HEAD", path, "").wants(200); head.header.Get("Content-Length") != "100000" || head.body != "" {
		t.Errorf("HEAD: got %v", head.header)
	}
	g.ask("GET", path, "", "If-None-Match", got.header.Get("ETag")).wants(304)

	id := g.create(`{"targetUrl": "https://example.org/", "bodyRef": "sha256:` + hash + `"}`)
	if got := g.ask("GET", "/retry-tasks/"+id, "").json()["bodyRef"]; got != "sha256:"+hash {
		t.Errorf("got bodyRef %v", got)
	}
	long := strings.Repeat("a", 70_000)
	id = g.create(`{"targetUrl": "https://example.org/", "idempotencyKey": "k", "body": "` + long + `"}`)
	stored, err := g.queue.Find(t.Context(), id)
	testkit.Must(t, err)
	part := request.Of(stored).Body[0]
	if info, err := store.Stat(part.Blob); err != nil || info.Size != 70_000 || len(part.Text) > 0 || part.Size != 70_000 {
		t.Errorf("got part %d bytes, blob %q %v: %v", len(part.Text), part.Blob, info, err)
	}
	again := g.ask("POST", "/retry-tasks", fmt.Sprintf(`{"targetUrl": "https://example.org/", "idempotencyKey": "k",
		"bodyRef": "sha256:%s", "headers": {"Content-Type": "text/plain; charset=utf-8"}}`, part.Blob)).wants(200)
	if again.json()["taskId"] != id {
		t.Errorf("got %s, want the same task: the content is the same", again.body)
	}
}

func TestMaxPending(t *testing.T) {
	now := time.Now()
	g := newRig(t, func(c *Config) { c.Limits.MaxPending = 3; c.Now = func() time.Time { return now } })
	id := g.create(hook)
	g.create(hook)
	g.create(hook)
	refused := g.ask("POST", "/retry-tasks", hook).wants(429)
	if refused.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	g.ask("DELETE", "/retry-tasks/"+id, "").wants(204)
	now = now.Add(2 * time.Second)
	g.create(hook)
	g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+hook+`]}`).wants(429)
}

// brokenQueue cannot be written.
type brokenQueue struct {
	state.Queue
	err error
}

func (q *brokenQueue) Add(ctx context.Context, tasks []*task.Task) ([]state.Added, error) {
	if q.err != nil {
		return nil, fmt.Errorf("add: %w", q.err)
	}
	return q.Queue.Add(ctx, tasks)
}

func TestStoreThatCannotBeWritten(t *testing.T) {
	q, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	defer func() { _ = q.Close() }()
	broken := &brokenQueue{Queue: q}
	now := time.Now()
	var warned atomic.Int32
	g := serving(t, q, func(c *Config) {
		c.Queue, c.Now, c.Warn = broken, func() time.Time { return now }, func(error) { warned.Add(1) }
	})
	for _, kind := range []error{state.ErrFull, state.ErrReadOnly, state.ErrLocked, state.ErrFileLimit} {
		broken.err = kind
		a := g.ask("POST", "/retry-tasks", hook).wants(503)
		if a.header.Get("Retry-After") == "" || a.problem().Type != "/problems/unavailable" {
			t.Errorf("%v: got %v %s", kind, a.header, a.body)
		}
		ready := g.ask("GET", "/readyz", "").wants(503).json()
		if got := ready["parts"].(map[string]any)["store"]; got == "ok" {
			t.Errorf("%v: got %v, want the store named", kind, ready)
		}
		broken.err = nil
		g.create(hook)
		g.ask("GET", "/readyz", "").wants(200)
	}
	if warned.Load() != 4 {
		t.Errorf("got %d warnings, want one for each fault", warned.Load())
	}
	broken.err = state.ErrFull
	g.ask("POST", "/retry-tasks", hook).wants(503)
	now = now.Add(faultFor)
	g.ask("GET", "/readyz", "").wants(200) // else nobody would try again
}

// unreadQueue cannot read its policies.
type unreadQueue struct{ state.Queue }

func (unreadQueue) GetPolicy(context.Context, string) (*state.StoredPolicy, error) {
	return nil, fmt.Errorf("get: %w", state.ErrCorrupt)
}

// That its policies cannot be read is no mistake of the client, whatever else it says.
func TestPoliciesThatCannotBeRead(t *testing.T) {
	q, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	defer func() { _ = q.Close() }()
	g := serving(t, q, func(c *Config) { c.Queue, c.Warn = unreadQueue{q}, func(error) {} })
	for path, body := range map[string]string{
		"/retry-tasks": hook, "/retry-tasks:batch": `{"tasks": [` + hook + `]}`, "/retry-policies:preview": `{}`,
	} {
		if a := g.ask("POST", path, body).wants(503); a.header.Get("Retry-After") == "" {
			t.Errorf("%s: got %v, want Retry-After", path, a.header)
		}
	}
	g.ask("POST", "/retry-tasks", `{"targetUrl": "https://example.org/", "unknown": 1}`).wants(503)
}

// A client that does not read its events is dropped, and holds nobody up.
func TestDeafClient(t *testing.T) {
	g := newRig(t)
	deaf, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	testkit.Must(t, err)
	defer func() { _ = deaf.Close() }()
	_, err = fmt.Fprintf(deaf, "GET /events HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(g.url, "http://"))
	testkit.Must(t, err)
	live := g.stream(t, "")
	for i := range 5 * keptEvents { // some 8 MB
		g.server.events.add(state.Change{ID: fmt.Sprint("task ", i), Status: task.Pending, At: time.Now()})
	}
	id := g.create(hook)
	for {
		if event, data, _ := live.next(); event == "reset" || strings.Contains(data, id) {
			break // this one is told that it is behind, or has read all
		}
	}
	g.server.stop()
}

// unserved returns a server that does not serve yet, its queue, and where it may listen.
func unserved(t *testing.T) (*Server, *sqlite.Queue, net.Listener) {
	q, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	t.Cleanup(func() { _ = q.Close() })
	s, err := New(Config{Queue: q})
	testkit.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	return s, q, listener
}

// Serve ends with its context: what is under way is answered, streams end.
func TestServe(t *testing.T) {
	s, q, listener := unserved(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() {
		served <- s.Serve(ctx, access.NewServer(access.New(access.Config{}).Handler(s.Handler())), listener)
	}()
	g := &rig{t: t, queue: q, server: s, url: "http://" + listener.Addr().String(), client: &http.Client{}}
	events := g.stream(t, "")
	g.create(hook)
	events.next()
	cancel()
	for events.lines.Scan() {
	}
	if err := <-served; err != nil {
		t.Errorf("got %v, want a quiet end", err)
	}
	if _, err := g.client.Get(g.url); err == nil {
		t.Error("got an answer after the end")
	}
}

// A client that stops in the middle of its call does not hold a server up that is to stop at once.
func TestServeEndsWithItsServer(t *testing.T) {
	s, _, listener := unserved(t)
	begun := make(chan struct{})
	h := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		_, _ = io.ReadAll(r.Body)
	})}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, h, listener) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	testkit.Must(t, err)
	defer func() { _ = client.Close() }()
	_, err = io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	testkit.Must(t, err)
	<-begun
	stop()
	testkit.Eventually(t, "it drains", s.draining.Load)
	testkit.Must(t, h.Close()) // a second signal
	if err := <-served; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// A list of very many tasks is read in parts that cost the same.
func TestManyTasks(t *testing.T) {
	count := 20_000
	if testing.Short() {
		count = 2000
	}
	g := newRig(t)
	for range count / 1000 {
		var batch bytes.Buffer
		for i := range 1000 {
			fmt.Fprintf(&batch, `{"targetUrl": "https://h%d.example.org/"},`, i%100)
		}
		g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+strings.TrimSuffix(batch.String(), ",")+`]}`).wants(201)
	}
	rare := "/retry-tasks?host=h7.example.org&limit=200"
	found := 0
	for rare != "" {
		a := g.ask("GET", rare, "").wants(200)
		found += len(a.json()["tasks"].([]any))
		rare, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
	}
	if found != count/100 {
		t.Errorf("got %d tasks, want %d", found, count/100)
	}
}

// instantQueue accepts tasks at once.
type instantQueue struct{ state.Queue }

func (instantQueue) Add(_ context.Context, tasks []*task.Task) ([]state.Added, error) {
	added := make([]state.Added, len(tasks))
	for i, t := range tasks {
		added[i].Task = t
	}
	return added, nil
}

// BenchmarkCreate is a POST of 256 bytes without the network and the store.
func BenchmarkCreate(b *testing.B) {
	q, err := sqlite.OpenQueue(b.Context(), b.TempDir())
	testkit.Must(b, err)
	defer func() { _ = q.Close() }()
	s, err := New(Config{Queue: instantQueue{q}})
	testkit.Must(b, err)
	body := fmt.Sprintf(`{"targetUrl": "https://example.org/hook", "bodyJson": {"text": %q}, "idempotencyKey": "order-1"}`,
		strings.Repeat("x", 256))
	h := s.Handler()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/retry-tasks", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			b.Fatal(w.Code, w.Body)
		}
	}
}

// BenchmarkDurableCreate is a POST over a socket to a journal on disk, 16 clients at a time, the clients included.
func BenchmarkDurableCreate(b *testing.B) {
	g := newRig(b)
	body := fmt.Sprintf(`{"targetUrl": "https://example.org/hook", "bodyJson": {"text": %q}}`, strings.Repeat("x", 240))
	b.SetParallelism(8)
	b.RunParallel(func(clients *testing.PB) {
		for clients.Next() {
			answer, err := g.client.Post(g.url+"/retry-tasks", "application/json", strings.NewReader(body))
			testkit.Must(b, err)
			_, err = io.Copy(io.Discard, answer.Body)
			testkit.Must(b, err, answer.Body.Close())
			if answer.StatusCode != http.StatusCreated {
				b.Error(answer.Status)
			}
		}
	})
}
