package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

func sprint(v any) string { return fmt.Sprint(v) }

var failed = task.Outcome{
	Exit: 22, Message: "503 Service Unavailable", Duration: 12 * time.Millisecond, Stdout: "busy",
	Reply: &task.Reply{Status: 503, Written: 1, Phases: task.Phases{Total: 1500 * time.Microsecond}},
}

func TestAttempts(t *testing.T) {
	g := newRig(t)
	id := g.create(hook)
	for range 3 {
		g.attempt(id, failed, task.VerdictRetry)
	}
	page := g.ask("GET", "/retry-tasks/"+id+"/attempts?limit=2", "").wants(200)
	list, next := page.json()["attempts"].([]any), page.json()["next"]
	if len(list) != 2 || next == nil || !strings.Contains(page.header.Get("Link"), `rel="next"`) {
		t.Fatalf("got %s, Link %q, want two attempts and a cursor", page.body, page.header.Get("Link"))
	}
	for name, want := range map[string]string{
		"taskId": id, "attemptNumber": "1", "durationMs": "12", "responseStatus": "503", "errorClass": "<nil>",
		"errorMessage": "503 Service Unavailable", "decision": "retry", "replyTail": "busy", "worker": "test",
		"requestsWritten": "1", "delayMs": "0",
	} {
		if got := list[0].(map[string]any)[name]; sprint(got) != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(page.header.Get("Link"), "<"), ">")
	rest := g.ask("GET", path, "").wants(200).json()
	if len(rest["attempts"].([]any)) != 1 || rest["next"] != nil {
		t.Errorf("got %v, want the third attempt and no more", rest)
	}
	other := g.create(hook)
	g.ask("GET", "/retry-tasks/"+other+"/attempts?cursor="+sprint(next), "").wants(400)
	g.ask("GET", "/retry-tasks/0198c2f0-5d3a-7b7e-9a55-3f2d1c0b9a87/attempts", "").wants(404)
	if got := g.ask("GET", "/retry-tasks/"+id, "").json(); sprint(got["attemptNumber"]) != "3" {
		t.Errorf("got %v, want three attempts", got)
	}
}

func TestReschedule(t *testing.T) {
	g := newRig(t)
	id := g.create(`{"targetUrl": "https://example.org/", "delayMs": 3600000}`)
	at := time.Now().Add(2 * time.Hour).UnixMilli()
	moved := g.ask("PATCH", "/retry-tasks/"+id, fmt.Sprintf(`{"nextAttemptAt": %d}`, at)).wants(200).json()
	if sprint(moved["nextAttemptAt"]) != sprint(at) {
		t.Errorf("got %v, want %d", moved["nextAttemptAt"], at)
	}
	g.ask("PATCH", "/retry-tasks/"+id, `{"nextAttemptAt": "now"}`).wants(200)
	g.ask("PATCH", "/retry-tasks/"+id, `{"nextAttemptAt": "soon"}`).wants(422)
	g.ask("PATCH", "/retry-tasks/"+id, `{}`).wants(422)
	g.attempt(id, task.Outcome{Reply: &task.Reply{Status: 200}}, task.VerdictSucceeded)
	g.ask("PATCH", "/retry-tasks/"+id, `{"nextAttemptAt": "now"}`).wants(409)
	g.ask("POST", "/retry-tasks/"+id+"/requeue", "").wants(202)
	g.ask("POST", "/retry-tasks/"+id+"/requeue", "").wants(409)
}

func TestList(t *testing.T) {
	g := newRig(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, g.create(fmt.Sprintf(`{"targetUrl": "https://h%d.example.org:443/", "tags": ["t%d"],
			"partition": "p%d"}`,
			i%2, i%2, i%2)))
	}
	g.ask("DELETE", "/retry-tasks/"+ids[4], "").wants(204)
	count := func(query string) (got []string) {
		for _, one := range g.ask("GET", "/retry-tasks?"+query, "").wants(200).json()["tasks"].([]any) {
			got = append(got, one.(map[string]any)["taskId"].(string))
		}
		return got
	}
	for _, tt := range []struct {
		query string
		want  []int
	}{
		{"", []int{4, 3, 2, 1, 0}}, {"status=CANCELLED", []int{4}}, {"status=PENDING,CANCELLED&host=h0.example.org",
			[]int{4, 2, 0}},
		{"tag=t1", []int{3, 1}}, {"partition=p1", []int{3, 1}}, {"partition=", nil}, {"policyId=default&limit=1", []int{4}},
		{"policyId=aws", nil}, {"until=0", nil}, {"since=2020-01-01T00:00:00Z&limit=2", []int{4, 3}},
		{"host=https://H1.example.org", []int{3, 1}},
	} {
		var want []string
		for _, i := range tt.want {
			want = append(want, ids[i])
		}
		if got := count(tt.query); sprint(got) != sprint(want) {
			t.Errorf("%s: got %v, want %v", tt.query, got, want)
		}
	}
	var all []string
	next := "/retry-tasks?limit=2&status=PENDING"
	for next != "" {
		a := g.ask("GET", next, "").wants(200)
		for _, one := range a.json()["tasks"].([]any) {
			all = append(all, one.(map[string]any)["taskId"].(string))
		}
		next, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
	}
	if sprint(all) != sprint([]string{ids[3], ids[2], ids[1], ids[0]}) {
		t.Errorf("got %v page by page, want the four that wait, newest first", all)
	}
	a := g.ask("GET", "/retry-tasks?limit=2", "").wants(200)
	cursor := a.json()["next"].(string)
	g.ask("GET", "/retry-tasks?limit=1&cursor="+cursor, "").wants(200)
	g.ask("GET", "/retry-tasks?tag=t1&cursor="+cursor, "").wants(400)
}

func TestTargets(t *testing.T) {
	g := newRig(t)
	if got := g.ask("GET", "/targets/example.org:8443", "").wants(200).json(); got["paused"] != false {
		t.Errorf("got %v, want no bounds", got)
	}
	g.ask("PUT", "/targets/Example.org:8443", `{"paused": true, "maxConcurrent": 3, "ratePerSecond": 0.5}`).wants(200)
	if got := g.ask("GET", "/targets/example.org:8443", "").json(); got["paused"] != true ||
		sprint(got["maxConcurrent"]) != "3" {
		t.Errorf("got %v, want what was put", got)
	}
	if got := g.ask("GET", "/targets", "").wants(200).json()["targets"].([]any); len(got) != 1 {
		t.Errorf("got %v, want one target", got)
	}
	g.ask("PUT", "/targets/example.org:8443", `{"maxConcurrent": 3}`).wants(200)
	if got := g.ask("GET", "/targets/example.org:8443", "").json(); got["paused"] != false {
		t.Errorf("got %v, want all settings replaced", got)
	}
	g.ask("PUT", "/targets/example.org:8443", `{"maxConcurrent": -1, "pause": true}`).wants(422)
	g.ask("PUT", "/targets/a%20b", `{}`).wants(400)
}

func TestRequeues(t *testing.T) {
	g := newRig(t)
	var dead []string
	for i := range 6 {
		id := g.create(fmt.Sprintf(`{"targetUrl": "https://h%d.example.org/"}`, i%2))
		g.attempt(id, failed, task.VerdictExhausted)
		dead = append(dead, id)
	}
	g.create(hook)
	groups := g.ask("GET", "/dead-letters", "").wants(200).json()["groups"].([]any)
	first := groups[0].(map[string]any)
	if len(groups) != 2 || sprint(first["count"]) != "3" || first["error"] != "status 503" ||
		first["policyId"] != "default" {
		t.Errorf("got %v, want two groups of three", groups)
	}
	g.ask("GET", "/dead-letters?status=PENDING", "").wants(400)
	dry := g.ask("POST", "/requeues", `{"filter": {"host": "h1.example.org"}, "dryRun": true}`).wants(200).json()
	if sprint(dry["matched"]) != "3" {
		t.Errorf("got %v, want 3 matched", dry)
	}
	a := g.ask("POST", "/requeues", `{"filter": {"host": "h1.example.org", "status": "EXHAUSTED"},
		"ratePerSecond": 1000}`).wants(202)
	testkit.Eventually(t, "done", func() bool {
		return g.ask("GET", a.header.Get("Location"), "").wants(200).json()["status"] == "done"
	})
	if got := g.ask("GET", a.header.Get("Location"), "").json(); sprint(got["requeued"]) != "3" ||
		sprint(got["skipped"]) != "0" {
		t.Errorf("got %v, want three requeued", got)
	}
	for i, id := range dead {
		want := []string{"EXHAUSTED", "PENDING"}[i%2]
		if got := g.ask("GET", "/retry-tasks/"+id, "").json()["status"]; got != want {
			t.Errorf("task %d: got %v, want %s", i, got, want)
		}
	}
	g.ask("DELETE", a.header.Get("Location"), "").wants(409)
	g.ask("GET", "/requeues/nothing", "").wants(404)
	g.ask("POST", "/requeues", `{"filter": {"status": "PENDING"}}`).wants(422)
	g.ask("POST", "/requeues", `{"ratePerSecond": 0}`).wants(422)
}

// A requeue goes on in the next server, and ends where it is cancelled.
func TestRequeueGoesOn(t *testing.T) {
	g := newRig(t)
	for range 3 {
		g.attempt(g.create(hook), failed, task.VerdictExhausted)
	}
	slow := g.ask("POST", "/requeues", `{"ratePerSecond": 0.01}`).wants(202).header.Get("Location")
	testkit.Eventually(t, "one requeued", func() bool {
		page, err := g.queue.Page(t.Context(), state.PageFilter{Statuses: []task.Status{task.Pending}, Limit: 10})
		return err == nil && len(page.Tasks) == 1
	})
	g.server.Close()
	next := serving(t, g.queue)
	testkit.Eventually(t, "the next server goes on", func() bool {
		page, err := next.queue.Page(t.Context(), state.PageFilter{Statuses: []task.Status{task.Pending}, Limit: 10})
		return err == nil && len(page.Tasks) == 2
	})
	if got := next.ask("GET", "/requeues", "").wants(200).json()["requeues"].([]any); len(got) != 1 {
		t.Errorf("got %v, want the one that runs", got)
	}
	next.ask("DELETE", slow, "").wants(204)
	next.ask("DELETE", slow, "").wants(204)
	if got := next.ask("GET", slow, "").wants(200).json(); got["status"] != "cancelled" || sprint(got["requeued"]) != "2" {
		t.Errorf("got %v, want it cancelled after two", got)
	}
}

// Of two servers on one store, one carries a requeue. The other one can cancel it, and goes on where the first has ended.
func TestOneServerCarriesARequeue(t *testing.T) {
	dir := t.TempDir()
	open := func() *rig {
		q, err := sqlite.OpenQueue(t.Context(), dir)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = q.Close() })
		return serving(t, q)
	}
	g, other := open(), open()
	for range 4 {
		g.attempt(g.create(hook), failed, task.VerdictExhausted)
	}
	waiting := func() int {
		page, err := g.queue.Page(t.Context(), state.PageFilter{Statuses: []task.Status{task.Pending}, Limit: 10})
		testkit.Must(t, err)
		return len(page.Tasks)
	}
	first := g.ask("POST", "/requeues", `{"ratePerSecond": 0.01}`).wants(202).header.Get("Location")
	testkit.Eventually(t, "one requeued", func() bool { return waiting() == 1 })
	testkit.Must(t, other.server.requeues.resume())
	testkit.Eventually(t, "the other server leaves it", func() bool { return other.server.requeues.count() == 0 })
	if got := waiting(); got != 1 {
		t.Errorf("got %d requeued tasks, want the one of the first server", got)
	}

	other.ask("DELETE", first, "").wants(204)
	testkit.Must(t, g.server.requeues.resume())
	testkit.Eventually(t, "the first server stops", func() bool { return g.server.requeues.count() == 0 })
	if got := g.ask("GET", first, "").wants(200).json(); got["status"] != "cancelled" || sprint(got["requeued"]) != "1" {
		t.Errorf("got %v, want it cancelled after one", got)
	}

	g.ask("POST", "/requeues", `{"ratePerSecond": 0.01}`).wants(202)
	testkit.Eventually(t, "a second one requeued", func() bool { return waiting() == 2 })
	g.server.Close()
	testkit.Must(t, other.server.requeues.resume())
	testkit.Eventually(t, "the other server goes on", func() bool { return waiting() == 3 })
}

// count is how many requeues this server carries, or is about to.
func (q *requeues) count() int {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.running)
}

func TestHealth(t *testing.T) {
	var broken error
	g := newRig(t, func(c *Config) {
		c.Ready = []Part{{"worker", func(context.Context) error { return broken }}}
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write([]byte("retry_tasks 1\n"))
		})
	})
	g.ask("GET", "/healthz", "").wants(200)
	g.ask("GET", "/readyz", "").wants(200)
	broken = errors.New("no worker lives\nhint: start one")
	got := g.ask("GET", "/readyz", "").wants(503).json()
	if parts := got["parts"].(map[string]any); parts["worker"] != "no worker lives" || parts["store"] != "ok" {
		t.Errorf("got %v, want the worker named", got)
	}
	if got := g.ask("GET", "/metrics", "").wants(200).body; got != "retry_tasks 1\n" {
		t.Errorf("got %q, want the metrics", got)
	}
	g.ask("GET", "/", "").wants(200)
	a := g.ask("GET", "/openapi.json", "").wants(200)
	g.ask("GET", "/openapi.json", "", "If-None-Match", a.header.Get("ETag")).wants(304)
	g.server.draining.Store(true)
	g.ask("GET", "/readyz", "").wants(503)
}
