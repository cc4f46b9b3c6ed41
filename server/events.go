package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// What is kept of events, for clients that come back.
const (
	keptEvents = 10_000
	keptFor    = time.Hour
)

// heartbeat is how often a stream has at least a comment, so that both sides notice when the other one is gone.
const heartbeat = 15 * time.Second

// revoked is how often a stream without events looks whether its client may still read. One with events looks each
// time.
const revoked = time.Second

// event is a step of a task. The first stream that reads it encodes it for all of them.
type event struct {
	TaskID  string      `json:"taskId"`
	Status  task.Status `json:"status"`
	Attempt int         `json:"attemptNumber"`
	At      int64       `json:"at"`

	name string
	text []byte // as streams have it; nil: none has read it yet
}

// The names of events.
const (
	taskEvent       = "task"       // a task has another status
	unfollowedEvent = "unfollowed" // the onExhausted of a dead task could not be made a task
)

// events keeps the latest changes of the store. Each stream reads them at its own pace, so that a slow one holds nobody
// up: one that is too far behind is told to look at everything again.
type events struct {
	server *Server
	begin  sync.Once
	begun  string // when the server began; what an earlier one has numbered is not known here

	mutex   sync.Mutex
	ring    []event // by number modulo its length
	first   int64   // the number of the oldest
	next    int64   // the number of the next one
	changed chan struct{}
}

func newEvents(s *Server) *events {
	return &events{
		server: s, begun: strconv.FormatInt(s.Now().UnixMilli(), 36), ring: make([]event, 0), changed: make(chan struct{}),
	}
}

// follow reads the changes of the store from the first call on, until the server ends.
func (e *events) follow() {
	e.begin.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		changes := e.server.Queue.Changes(ctx)
		e.mutex.Lock()
		e.ring = make([]event, keptEvents)
		e.mutex.Unlock()
		go func() {
			defer cancel()
			for {
				select {
				case c, open := <-changes:
					if !open {
						return
					}
					e.add(c)
				case <-e.server.stopped:
					return
				}
			}
		}()
	})
}

// add notes a change and wakes the streams.
func (e *events) add(c state.Change) {
	if c.ID == "" && (!c.Lost || c.Precaution) {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if c.Lost {
		e.next++ // a gap: whoever has not read it is told to begin anew
		e.first = e.next
	} else {
		name := taskEvent
		if c.Unfollowed {
			name = unfollowedEvent
		}
		e.ring[e.next%keptEvents] = event{
			TaskID: c.ID, Status: c.Status, Attempt: c.Attempt, At: c.At.UnixMilli(), name: name,
		}
		e.next++
		e.first = max(e.first, e.next-keptEvents)
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// since returns the events from a number on, at most a few at a time, and a channel that is closed when there are more.
// lost says that some before them are not kept any more.
func (e *events) since(from int64, now time.Time) (list []event, next int64, lost bool, more <-chan struct{}) {
	const most = 500
	e.mutex.Lock()
	defer e.mutex.Unlock()
	old := now.Add(-keptFor).UnixMilli()
	for e.first < e.next && e.ring[e.first%keptEvents].At < old {
		e.first++
	}
	if from < e.first || from > e.next {
		return nil, e.next, true, e.changed
	}
	next = min(e.next, from+most)
	for n := from; n < next; n++ {
		one := &e.ring[n%keptEvents]
		if one.text == nil {
			data, _ := json.Marshal(one)
			one.text = fmt.Appendf(nil, "id: %s-%d\nevent: %s\ndata: %s\n\n", e.begun, n+1, one.name, data)
		}
		list = append(list, *one)
	}
	return list, next, false, e.changed
}

// place reads a Last-Event-ID. One that is not known here is older than everything.
func (e *events) place(id string) int64 {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if id == "" {
		return e.next
	}
	begun, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || begun != e.begun {
		return -1
	}
	return n
}

// streamEvents is GET /events. The id of an event is where a client goes on after it.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) error {
	e := s.events
	e.follow()
	w = access.Patient(w, r)
	control := http.NewResponseController(w)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // of nginx
	from := e.place(r.Header.Get("Last-Event-ID"))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	look := time.NewTicker(revoked)
	defer look.Stop()
	text := fmt.Appendf(nil, "retry: 2000\nid: %s-%d\n\n", e.begun, from)
	if from < 0 {
		text = []byte("retry: 2000\n\n")
	}
	for {
		list, next, lost, more := e.since(from, s.Now())
		if lost {
			text = fmt.Appendf(text, "id: %s-%d\nevent: reset\ndata: {}\n\n", e.begun, next)
		}
		for _, one := range list {
			text = append(text, one.text...)
		}
		from = next
		if s.MayRead != nil && !s.MayRead(r) {
			return nil
		}
		if len(text) > 0 {
			if _, err := w.Write(text); err != nil {
				return nil
			}
			if err := control.Flush(); err != nil {
				return nil
			}
			text = text[:0]
			if len(list) > 0 {
				continue // there may be more
			}
		}
		select {
		case <-more:
		case <-look.C:
		case <-beat.C:
			text = append(text, ": alive\n\n"...)
		case <-r.Context().Done():
			return nil
		case <-s.stopped:
			return nil
		}
	}
}
