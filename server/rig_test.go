package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/10f93571/retry/internal/expression" // compiles conditions
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// rig is a server on a journal of its own, and a client that talks to it over a socket.
type rig struct {
	t      testing.TB
	queue  *sqlite.Queue
	server *Server
	url    string
	client *http.Client
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	q, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return serving(t, q, change...)
}

// serving is a rig on a queue that is open already.
func serving(t testing.TB, q *sqlite.Queue, change ...func(*Config)) *rig {
	t.Helper()
	c := Config{Queue: q, Warn: func(err error) { t.Errorf("the server warned: %v", err) }, Version: "1.2.3",
		Directory: os.TempDir()}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	testkit.Must(t, err)
	checked := access.New(access.Config{AnyType: func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path,
			"/blobs/")
	}})
	listener := httptest.NewUnstartedServer(nil)
	listener.Config = access.NewServer(checked.Handler(s.Handler()))
	listener.Start()
	t.Cleanup(func() {
		s.Close()
		listener.Close()
	})
	client := &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &rig{t: t, queue: q, server: s, url: listener.URL, client: client}
}

// answer is what the server said.
type answer struct {
	t      testing.TB
	asked  string
	status int
	header http.Header
	body   string
}

// ask sends a request. The headers are names and values in turn. A body is JSON unless they say otherwise.
func (g *rig) ask(method, path, body string, headers ...string) answer {
	g.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, content)
	testkit.Must(g.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := g.client.Do(r)
	testkit.Must(g.t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	testkit.Must(g.t, err)
	a := answer{g.t, method + " " + path, got.StatusCode, got.Header, string(text)}
	conforms(g.t, r, body, a)
	return a
}

// wants checks the status of an answer.
func (a answer) wants(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: got %d %s, want %d", a.asked, a.status, a.body, status)
	}
	return a
}

// json returns the answer as an object.
func (a answer) json() map[string]any {
	a.t.Helper()
	var value map[string]any
	d := json.NewDecoder(bytes.NewBufferString(a.body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		a.t.Fatalf("%s: got %q, want JSON: %v", a.asked, a.body, err)
	}
	return value
}

// problem returns the answer as problem details.
func (a answer) problem() problem.Problem {
	a.t.Helper()
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		a.t.Fatalf("%s: got Content-Type %q of %q, want problem details", a.asked, kind, a.body)
	}
	var p problem.Problem
	testkit.Must(a.t, json.Unmarshal([]byte(a.body), &p))
	return p
}

// pointers returns the mistakes of an answer: pointer, space, detail.
func (a answer) pointers() (all []string) {
	a.t.Helper()
	for _, m := range a.problem().Errors {
		all = append(all, m.Pointer+" "+m.Detail)
	}
	return all
}

// create makes a task and returns its id.
func (g *rig) create(body string) string {
	g.t.Helper()
	id, _ := g.ask("POST", "/retry-tasks", body).wants(201).json()["taskId"].(string)
	return id
}

const hook = `{"targetUrl": "https://example.org/hook", "bodyJson": {"n": 12345678901234567890}}`

// attempt has a worker carry a task for one attempt, which ends as it is told.
func (g *rig) attempt(id string, o task.Outcome, v task.Verdict) {
	g.t.Helper()
	ctx, now := g.t.Context(), time.Now()
	worker, err := g.queue.Register(ctx, state.Worker{Name: "test", Concurrency: 1})
	testkit.Must(g.t, err)
	t := g.claim(id, worker, now)
	t.BeginAttempt()
	a := task.Attempt{Number: t.AttemptCount, StartedAt: now, Outcome: o, Decision: task.Decision{Verdict: v}}
	if v == task.VerdictExhausted {
		a.Decision.Reason = task.ReasonAttempts
	}
	t.ApplyDecision(a, now)
	testkit.Must(g.t, g.queue.Settle(ctx, t, a, nil))
	testkit.Must(g.t, g.queue.Unregister(ctx, worker))
}

// claim begins an attempt of a task.
func (g *rig) claim(id string, worker int64, now time.Time) *task.Task {
	g.t.Helper()
	t, err := g.queue.Find(g.t.Context(), id)
	testkit.Must(g.t, err)
	claimed, err := g.queue.Claim(g.t.Context(), worker, []int64{t.Number}, now, nil)
	testkit.Must(g.t, err)
	if len(claimed) != 1 || claimed[0] == nil {
		g.t.Fatalf("claim %s: got %v, want the task", id, claimed)
	}
	return claimed[0]
}
