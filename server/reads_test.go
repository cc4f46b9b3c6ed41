package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// slowQueue reads a list until it is told to end.
type slowQueue struct {
	quietQueue
	end         chan struct{}
	under, most atomic.Int32
}

func (q *slowQueue) Page(context.Context, state.PageFilter) (state.Page, error) {
	n := q.under.Add(1)
	defer q.under.Add(-1)
	q.most.Store(max(n, q.most.Load()))
	<-q.end
	return state.Page{}, nil
}

// Of many clients that read lists, a few are served at a time; the others wait for their turn, and not for ever. Those
// that change something do not wait for them.
func TestListsTakeTurns(t *testing.T) {
	stored, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	defer func() { _ = stored.Close() }()
	synctest.Test(t, func(t *testing.T) {
		q := &slowQueue{quietQueue: quietQueue{stored}, end: make(chan struct{})}
		s, err := New(Config{Queue: q})
		testkit.Must(t, err)
		ask := func(method, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
			return w
		}
		var group sync.WaitGroup
		var served, refused atomic.Int32
		flood := func() {
			for range 100 {
				group.Go(func() {
					switch w := ask(http.MethodGet, "/retry-tasks"); {
					case w.Code == http.StatusOK:
						served.Add(1)
					case w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "1":
						refused.Add(1)
					default:
						t.Errorf("got %d %s", w.Code, w.Body)
					}
				})
			}
			synctest.Wait()
		}
		flood()
		if w := ask(http.MethodDelete, "/retry-tasks/none"); w.Code != http.StatusNotFound {
			t.Errorf("a change beside them: got %d %s, want 404", w.Code, w.Body)
		}
		time.Sleep(readPatience + time.Second)
		if got := refused.Load(); got != 100-listReads || served.Load() != 0 {
			t.Errorf("got %d refused, %d served, want all refused but %d", got, served.Load(), listReads)
		}
		flood()
		close(q.end)
		group.Wait()
		if got, most := served.Load(), q.most.Load(); got != 100+listReads || most != listReads {
			t.Errorf("got %d served, %d at a time, want %d, %d at a time", got, most, 100+listReads, listReads)
		}
		s.Close()
	})
}

// A preview computes for long, so it takes turns with the reads. What is wrong with it is told at once.
func TestPreviewsTakeTurns(t *testing.T) {
	stored, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	testkit.Must(t, err)
	defer func() { _ = stored.Close() }()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Queue: quietQueue{stored}})
		testkit.Must(t, err)
		defer s.Close()
		wants := func(body string, status int) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/retry-policies:preview", strings.NewReader(body))
			s.Handler().ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%s: got %d %s, want %d", body, w.Code, w.Body, status)
			}
		}
		for range listReads {
			s.reads.turns <- struct{}{}
		}
		wants(`{"policyId": "sidekiq"}`, http.StatusServiceUnavailable)
		wants(`{"policy": {"maxAttempts": 3}}`, http.StatusServiceUnavailable)
		wants(`{"unknown": 1}`, http.StatusUnprocessableEntity)
		<-s.reads.turns
		wants(`{"policyId": "sidekiq"}`, http.StatusOK)
		wants(`{"policy": {"maxAttempts": 3}}`, http.StatusOK)
		if got := len(s.reads.turns); got != listReads-1 {
			t.Errorf("got %d turns taken, want %d", got, listReads-1)
		}
	})
}

// A part of a list has a bounded size, and a client reads on until it has every task.
func TestPartsOfBigTasks(t *testing.T) {
	g := newRig(t)
	const count, size = 40, 60_000
	one := `{"targetUrl": "https://example.org/", "tags": ["big"], "body": "` + strings.Repeat("x", size) + `"}`
	for range count / 10 {
		g.ask("POST", "/retry-tasks:batch", `{"tasks": [`+strings.Repeat(one+",", 9)+one+`]}`).wants(201)
	}
	if short := g.ask("GET", "/retry-tasks?limit=200", "").wants(200).json(); len(short["tasks"].([]any)) != count {
		t.Errorf("without bodies: got %d tasks, want %d", len(short["tasks"].([]any)), count)
	}
	seen := map[any]bool{}
	const path = "/retry-tasks?tag=big&view=full&limit=200"
	for next := ""; ; {
		part := g.ask("GET", path+next, "").wants(200)
		if most := largestPart + 2*size; len(part.body) > most {
			t.Errorf("got a part of %d bytes, want at most %d", len(part.body), most)
		}
		for _, one := range part.json()["tasks"].([]any) {
			seen[one.(map[string]any)["taskId"]] = true
		}
		cursor, more := part.json()["next"].(string)
		if !more {
			break
		}
		next = "&cursor=" + cursor
	}
	if len(seen) != count {
		t.Errorf("got %d tasks, want %d", len(seen), count)
	}
}

// holdingWriter notes how much is held while an answer is written.
type holdingWriter struct {
	*httptest.ResponseRecorder
	held *held
	seen int64
}

func (w *holdingWriter) Write(p []byte) (int, error) {
	w.seen = w.held.bytes.Load()
	return w.ResponseRecorder.Write(p)
}

// Parts of lists that clients do not read are bounded together. Small ones, as most are, are always answered.
func TestHeldParts(t *testing.T) {
	big, small := strings.Repeat("x", smallPart), "x"
	for _, tt := range []struct {
		name, value string
		before      int64
		status      int
		during      int64
	}{
		{name: "big", value: big, status: http.StatusOK, during: smallPart + int64(len(`""`)+1)},
		{name: "small", value: small, status: http.StatusOK},
		{name: "big beside many", value: big, before: mostHeld - smallPart, status: http.StatusServiceUnavailable},
		{name: "small beside many", value: small, before: mostHeld, status: http.StatusOK, during: mostHeld},
	} {
		h := &held{}
		h.bytes.Store(tt.before)
		w := &holdingWriter{ResponseRecorder: httptest.NewRecorder(), held: h}
		if err := h.reply(w, httptest.NewRequest(http.MethodGet, "/", nil), tt.value); err != nil {
			problem.Write(w.ResponseRecorder, err)
		}
		if w.Code != tt.status || w.seen != tt.during || h.bytes.Load() != tt.before {
			t.Errorf("%s: got %d, %d bytes held during it, %d after it; want %d, %d, %d", tt.name, w.Code, w.seen,
				h.bytes.Load(), tt.status, tt.during, tt.before)
		}
	}
}

func TestPartsOfAttempts(t *testing.T) {
	attempts := make([]task.Attempt, 10)
	for i := range attempts {
		half := strings.Repeat("o", largestPart/8)
		attempts[i].Outcome = task.Outcome{Stdout: half, Stderr: half}
	}
	for limit, want := range map[int]int{2: 2, 4: 4, 5: 5, 9: 5} {
		if got := fitting(attempts, limit); got != want {
			t.Errorf("limit %d: got %d attempts, want %d", limit, got, want)
		}
	}
	attempts[0].Outcome.Stdout = strings.Repeat("o", 2*largestPart)
	if got := fitting(attempts, 9); got != 1 {
		t.Errorf("got %d attempts after a large one, want it alone", got)
	}
}

// loudQueue has seven attempts of each task, with a lot of output.
type loudQueue struct{ state.Queue }

func (loudQueue) AttemptsAfter(_ context.Context, _ int64, after, limit int) (attempts []task.Attempt, err error) {
	for n := after + 1; n <= min(7, after+limit); n++ {
		loud := task.Outcome{Stdout: strings.Repeat("o", largestPart/2)}
		attempts = append(attempts, task.Attempt{Number: n, StartedAt: time.Now(), Outcome: loud})
	}
	return attempts, nil
}

func TestPartsOfLoudAttempts(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Queue = loudQueue{c.Queue} })
	path := "/retry-tasks/" + g.create(hook) + "/attempts?limit=200"
	first := g.ask("GET", path, "").wants(200).json()
	next, _ := first["next"].(string)
	second := g.ask("GET", path+"&cursor="+next, "").wants(200).json()
	for i, part := range []map[string]any{first, second} {
		attempts := part["attempts"].([]any)
		if len(attempts) != 3 || sprint(attempts[0].(map[string]any)["attemptNumber"]) != sprint(1+3*i) {
			t.Errorf("part %d: got %d attempts, want 3 from %d on", i, len(attempts), 1+3*i)
		}
	}
}
