package server

import (
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestCreateTask(t *testing.T) {
	g := newRig(t)
	a := g.ask("POST", "/retry-tasks", `{"targetUrl": "https://example.org/hook", "method": "PUT", "policyId": "aws",
		"headers": {"X-A": ["1", "2"], "Authorization": "Bearer abcdefgh"}, "bodyJson": {"n": 12345678901234567890},
		"idempotencyKey": "order-1", "tags": ["a", "b"], "partition": "acme", "delayMs": 60000, "timeoutMs": 1500}`).
		wants(201)
	got := a.json()
	id, _ := got["taskId"].(string)
	if a.header.Get("Location") != "/retry-tasks/"+id || a.header.Get("ETag") == "" {
		t.Errorf("got header %v, want the task's Location and an ETag", a.header)
	}
	for name, want := range map[string]any{
		"idempotencyKey": "order-1", "targetUrl": "https://example.org/hook", "method": "PUT", "policyId": "aws",
		"status": "PENDING", "partition": "acme", "bodyRef": nil, "reason": nil, "kind": "http", "host": "example.org",
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	stored, err := g.queue.Find(t.Context(), id)
	testkit.Must(t, err)
	r := request.Of(stored)
	headers := strings.Join(r.Header, "\n")
	if want := "X-A: 1\nX-A: 2\nAuthorization: Bearer abcdefgh\nContent-Type: application/json"; headers != want {
		t.Errorf("got headers\n%s\nwant\n%s", headers, want)
	}
	if body := string(r.Body[0].Text); body != `{"n": 12345678901234567890}` || !r.Guarded || !r.Safe() || !r.SendsKey() {
		t.Errorf("got body %s, guarded %v, safe %v, key sent %v", body, r.Guarded, r.Safe(), r.SendsKey())
	}
	if p := stored.Policy; p.Name != "aws" || p.Attempts != 3 || p.Timeout != 1500*time.Millisecond {
		t.Errorf("got policy %+v, want aws with a timeout of 1.5s", p)
	}
	wait := stored.NextAttemptAt.Sub(stored.CreatedAt)
	if wait != time.Minute || stored.Queue != task.QueueWorker {
		t.Errorf("got a wait of %v, queue %d, want a minute and the workers' queue", wait, stored.Queue)
	}
	full := g.ask("GET", "/retry-tasks/"+id+"?view=full", "").wants(200).json()
	auth := full["headers"].(map[string]any)["Authorization"].([]any)[0]
	if auth != "Bearer ***" || full["body"] != `{"n": 12345678901234567890}` {
		t.Errorf("got Authorization %v and body %v, want the first masked, the second whole", auth, full["body"])
	}
}

// What follows a dead task has the same secrets as the task itself.
func TestSecretsOfOnExhausted(t *testing.T) {
	g := newRig(t)
	id := g.create(`{"targetUrl": "https://example.org/", "onExhausted": {"targetUrl": "https://me:hunter2@example.org/x",
		"headers": {"authorization": "Bearer hunter2", "Cookie": ["a=hunter2", "b=hunter2"], "X-A": "1"},
		"bodyJson": {"n": 12345678901234567890}, "tags": ["a"]}}`)
	for _, path := range []string{"/retry-tasks/" + id + "?view=full", "/retry-tasks?view=full"} {
		a := g.ask("GET", path, "").wants(200)
		want := `"onExhausted":{"targetUrl":"https://me:***@example.org/x","headers":{"Cookie":["***","***"],"X-A":"1",` +
			`"authorization":"Bearer ***"},"bodyJson":{"n":12345678901234567890},"tags":["a"]}`
		if !strings.Contains(a.body, want) || strings.Contains(a.body, "hunter2") {
			t.Errorf("%s: got %s, want %s", a.asked, a.body, want)
		}
	}
}

// The key of what follows a dead task is nobody else's: that would not be sent.
func TestReservedKey(t *testing.T) {
	g := newRig(t)
	id := g.create(hook)
	body := `{"targetUrl": "https://example.org/", "partition": "acme", "idempotencyKey": "` + id + `:exhausted"}`
	for _, a := range []answer{
		g.ask("POST", "/retry-tasks", body),
		g.ask("POST", "/retry-tasks", hook, "Idempotency-Key", id+":exhausted"),
		g.ask("POST", "/retry-tasks", hook, "Idempotency-Key", `"`+strings.ToUpper(id)+`:exhausted"`),
	} {
		if got := a.wants(422).pointers(); len(got) != 1 || !strings.HasPrefix(got[0], "/idempotencyKey a key that ends so") {
			t.Errorf("got %q, want the key refused", got)
		}
	}
	for _, free := range []string{"order-1:exhausted", id, ":exhausted", id + ":exhausted2"} {
		g.ask("POST", "/retry-tasks", hook, "Idempotency-Key", free).wants(201)
	}
}

func TestReplay(t *testing.T) {
	g := newRig(t)
	body := func(n string) string {
		return `{"targetUrl": "https://example.org/", "bodyJson": {"n": ` + n + `}, "idempotencyKey": "k"}`
	}
	id := g.create(body("1"))
	again := g.ask("POST", "/retry-tasks", body("1"), "Idempotency-Key", "k").wants(200)
	if again.header.Get("Idempotent-Replayed") != "true" || again.json()["taskId"] != id {
		t.Errorf("got %v %s, want the same task, replayed", again.header, again.body)
	}
	other := g.ask("POST", "/retry-tasks", body("2")).wants(422)
	if p := other.problem(); p.Type != "/problems/idempotency-key-reused" || p.Errors[0].Pointer != "/idempotencyKey" {
		t.Errorf("got %+v, want the key pointed at", p)
	}
	g.ask("POST", "/retry-tasks", body("1"), "Idempotency-Key", "other").wants(400)
	g.ask("POST", "/retry-tasks", strings.Replace(body("2"), `"k"`, `"k", "partition": "p"`, 1)).wants(201)
}

func TestGetTask(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Retention = 24 * time.Hour })
	id := g.create(hook)
	a := g.ask("GET", "/retry-tasks/"+id, "").wants(200)
	g.ask("GET", "/retry-tasks/"+id, "", "If-None-Match", a.header.Get("ETag")).wants(304)
	g.ask("GET", "/retry-tasks/"+id, "", "If-None-Match", `"other"`).wants(200)
	if head := g.ask("HEAD", "/retry-tasks/"+id, "").wants(200); head.body != "" || head.header.Get("ETag") == "" {
		t.Errorf("HEAD: got %q, %v, want an ETag and no body", head.body, head.header)
	}
	g.ask("GET", "/retry-tasks/nothing", "").wants(404)
	g.ask("GET", "/retry-tasks/0198c2f0-5d3a-7b7e-9a55-3f2d1c0b9a87", "").wants(410)
	g.ask("GET", "/retry-tasks/"+id[:len(id)-4]+"0000", "").wants(404)
	g.ask("GET", "/retry-tasks/"+id+"?view=fll", "").wants(400)
}

func TestCancelTask(t *testing.T) {
	g := newRig(t)
	id := g.create(hook)
	g.ask("DELETE", "/retry-tasks/"+id, "").wants(204)
	g.ask("DELETE", "/retry-tasks/"+id, "").wants(204)
	if got := g.ask("GET", "/retry-tasks/"+id, "").json(); got["status"] != "CANCELLED" || got["reason"] != "cancelled" {
		t.Errorf("got %v, want it cancelled", got)
	}
	running := g.create(hook)
	worker, err := g.queue.Register(t.Context(), state.Worker{Name: "test"})
	testkit.Must(t, err)
	g.claim(running, worker, time.Now())
	g.ask("DELETE", "/retry-tasks/"+running, "").wants(202)
	g.ask("DELETE", "/retry-tasks/"+running, "").wants(204)
	done := g.create(hook)
	g.attempt(done, task.Outcome{Reply: &task.Reply{Status: 204}}, task.VerdictSucceeded)
	g.ask("DELETE", "/retry-tasks/"+done, "").wants(409)
	g.ask("DELETE", "/retry-tasks/0198c2f0-5d3a-7b7e-9a55-3f2d1c0b9a87", "").wants(404)
}
