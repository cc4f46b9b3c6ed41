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
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
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
