package server

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// stream reads server-sent events, without comments.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (g *rig) stream(t *testing.T, last string) *stream {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a test that waits in vain fails
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/events", nil)
	testkit.Must(t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	got, err := g.client.Do(r)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = got.Body.Close() })
	if kind := got.Header.Get("Content-Type"); got.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("got %d %s, want a stream", got.StatusCode, kind)
	}
	return &stream{t, bufio.NewScanner(got.Body)}
}

// next returns the next event with data, and its id.
func (s *stream) next() (event, data, id string) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			event = value
		case name == "data":
			data = value
		case name == "" && data != "":
			return event, data, id
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return "", "", ""
}

func TestEvents(t *testing.T) {
	g := newRig(t)
	live := g.stream(t, "")
	id := g.create(hook)
	event, data, at := live.next()
	if event != "task" || !strings.Contains(data, `"taskId":"`+id+`","status":"PENDING"`) {
		t.Errorf("got %s %s, want the new task", event, data)
	}
	g.ask("DELETE", "/retry-tasks/"+id, "").wants(204)
	if _, data, _ = live.next(); !strings.Contains(data, `"status":"CANCELLED"`) {
		t.Errorf("got %s, want it cancelled", data)
	}
	if _, data, _ := g.stream(t, at).next(); !strings.Contains(data, `"status":"CANCELLED"`) {
		t.Errorf("got %s after the first event, want the second", data)
	}
	for _, unknown := range []string{"nothing", "abc-1", g.server.events.begun + "-99999"} {
		if event, _, _ := g.stream(t, unknown).next(); event != "reset" {
			t.Errorf("%s: got %s, want reset", unknown, event)
		}
	}
	for range keptEvents + 1 {
		g.server.events.add(state.Change{ID: id, Status: task.Pending, At: time.Now()})
	}
	if event, _, _ := g.stream(t, at).next(); event != "reset" {
		t.Errorf("got %s for an event that is not kept, want reset", event)
	}
	g.server.events.add(state.Change{Lost: true, Precaution: true})
	g.server.events.add(state.Change{Lost: true})
	waiting := g.stream(t, "")
	g.server.stop()
	for waiting.lines.Scan() { // ends with the server
	}
}

// What could not follow a dead task is an event of its own.
func TestUnfollowedEvent(t *testing.T) {
	g := newRig(t)
	live := g.stream(t, "")
	id := g.create(hook)
	live.next()
	dead, err := g.queue.Find(t.Context(), id)
	testkit.Must(t, err)
	g.queue.TellUnfollowed(dead)
	if event, data, _ := live.next(); event != "unfollowed" || !strings.Contains(data, `"taskId":"`+id+`"`) {
		t.Errorf("got %s %s, want that the task is unfollowed", event, data)
	}
}

// A stream ends with the right of its client, also where nothing happens.
func TestRevokedStream(t *testing.T) {
	var revoked atomic.Bool
	g := newRig(t, func(c *Config) { c.MayRead = func(*http.Request) bool { return !revoked.Load() } })
	quiet, live := g.stream(t, ""), g.stream(t, "")
	g.create(hook)
	live.next()
	quiet.next()
	revoked.Store(true)
	g.create(hook) // which none of them may see
	for _, s := range []*stream{quiet, live} {
		for s.lines.Scan() {
			if strings.HasPrefix(s.lines.Text(), "data: ") {
				t.Errorf("got %s, want nothing more", s.lines.Text())
			}
		}
		testkit.Must(t, s.lines.Err())
	}
}

// A client that does not read is dropped, and holds nobody up.
func TestOldEventsGo(t *testing.T) {
	g := newRig(t)
	e := g.server.events
	e.follow()
	now := time.Now()
	e.add(state.Change{ID: "old", At: now.Add(-2 * keptFor)})
	e.add(state.Change{ID: "new", At: now})
	if list, _, lost, _ := e.since(0, now); !lost || list != nil {
		t.Errorf("got %v, lost %v, want the old one gone", list, lost)
	}
	list, _, _, _ := e.since(1, now)
	if len(list) != 1 || list[0].TaskID != "new" {
		t.Fatalf("got %v, want the new one", list)
	}
	again, _, _, _ := e.since(1, now)
	text, want := list[0].text, "id: "+e.begun+"-2\nevent: task\n"
	if &text[0] != &again[0].text[0] || !strings.HasPrefix(string(text), want) {
		t.Errorf("got %q, want %q, encoded once for all streams", text, want)
	}
}

// A stream without events has a comment now and then, so that both sides notice when the other one is gone.
func TestHeartbeat(t *testing.T) {
	q, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	defer func() { _ = q.Close() }()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Queue: quietQueue{q}})
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)
		w := httptest.NewRecorder()
		ended := make(chan struct{})
		go func() {
			s.Handler().ServeHTTP(w, r)
			close(ended)
		}()
		time.Sleep(3*heartbeat + time.Second)
		cancel()
		<-ended
		s.Close()
		if got := strings.Count(w.Body.String(), ": alive\n\n"); got != 3 {
			t.Errorf("got %d comments in %q, want 3", got, w.Body)
		}
	})
}

// quietQueue has no changes, and no operations to go on with.
type quietQueue struct{ state.Queue }

func (quietQueue) Changes(context.Context) <-chan state.Change { return nil }

func (quietQueue) Operations(context.Context) ([]state.Operation, error) { return nil, nil }
