package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// service is what adders, workers and servers of a journal have in common.
type service struct {
	socket string // of the API
	target string // the URL that requests go to
}

// near is the target of all requests: it logs what it gets, and answers each attempt as replyTo says.
type near struct {
	*httptest.Server
	mutex      sync.Mutex
	deliveries []*delivery
	open       map[string][]*delivery // by task
}

// delivery is a request that arrived.
type delivery struct {
	task    string
	attempt int
	key     string
	status  int    // of the reply; 0 for none
	beside  string // another attempt of the task that arrived meanwhile, though who sent this one lived on
	later   string // an attempt that arrived while this one was under way
}

// reset has the target close the connection, and hang has it wait for the client to do so.
const (
	reset = 0
	hang  = -1
)

// replyTo returns the status with which an attempt is answered.
func replyTo(id string, attempt int) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, id, " ", attempt)
	return []int{200, 200, 200, 500, 500, 503, reset, hang, 200, 404}[h.Sum32()%10]
}

func newNear() *near {
	n := &near{open: map[string][]*delivery{}}
	n.Server = httptest.NewServer(n)
	return n
}

// ServeHTTP implements http.Handler.
func (n *near) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	d := &delivery{task: r.Header.Get("Retry-Task-Id"), key: r.Header.Get("Idempotency-Key")}
	d.attempt, _ = strconv.Atoi(r.Header.Get("Retry-Attempt"))
	n.arrive(d)
	time.Sleep(rand.N(8 * time.Millisecond))
	status := replyTo(d.task, d.attempt)
	if status == hang {
		<-r.Context().Done()
		status = reset
	}
	n.leave(r.Context(), d, status)
	if status == reset {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
}

func (n *near) arrive(d *delivery) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, other := range n.open[d.task] {
		other.later = fmt.Sprint("attempt ", d.attempt)
	}
	n.open[d.task] = append(n.open[d.task], d)
	n.deliveries = append(n.deliveries, d)
}

// leave ends a delivery. One that another arrived beside must come from a worker that was killed or has given it up: its
// connection is closed, which the system may tell a moment later.
func (n *near) leave(ctx context.Context, d *delivery, status int) {
	n.mutex.Lock()
	n.open[d.task] = slices.DeleteFunc(n.open[d.task], func(other *delivery) bool { return other == d })
	if len(n.open[d.task]) == 0 {
		delete(n.open, d.task)
	}
	d.status = status
	later := d.later
	n.mutex.Unlock()
	if later == "" {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
		n.mutex.Lock()
		d.beside = later
		n.mutex.Unlock()
	}
}

func (n *near) sent() (list []delivery) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, d := range n.deliveries {
		list = append(list, *d)
	}
	return list
}

func (s *trial) close() {
	s.near.CloseClientConnections()
	s.near.Close()
}

// checkSent compares what the target got with the journal: each attempt was sent at most once, with the key of the task,
// no two at the same time, and was answered as the journal says.
func (l *taskHistory) checkSent() {
	got := map[int]delivery{}
	for _, d := range l.sent {
		if _, twice := got[d.attempt]; twice {
			l.problem("attempt %d was sent twice", d.attempt)
		}
		got[d.attempt] = d
		switch {
		case d.attempt < 1 || d.attempt > len(l.attempts):
			l.problem("the journal has no attempt %d, which the target got", d.attempt)
		case d.key != l.IdempotencyKey && d.key != strconv.Quote(l.IdempotencyKey):
			l.problem("the key is %s, attempt %d had %s", l.IdempotencyKey, d.attempt, d.key)
		case d.beside != "":
			l.problem("attempt %d was under way beside %s, and its worker lived", d.attempt, d.beside)
		}
	}
	if l.Target == nil || l.Queue == task.QueueNone {
		return
	}
	for _, a := range l.attempts {
		if a.Outcome.Reply == nil || a.Outcome.Reply.Status == 0 {
			continue
		}
		if d, found := got[a.Number]; !found || d.status != a.Outcome.Reply.Status {
			l.problem("attempt %d: the journal has status %d, the target %+v", a.Number, a.Outcome.Reply.Status, d)
		}
	}
	if d := got[l.AttemptCount]; l.Status == task.Succeeded && d.status != 200 {
		l.problem("succeeded, and the target has %+v", d)
	}
}

// acknowledged records that a task is known to be stored.
func (s *trial) acknowledged(id, key string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.seen.stored[id] = true
	if before := s.seen.keys[key]; key != "" && before != "" && before != id {
		s.problems = append(s.problems, fmt.Sprintf("the key %s is that of %s and of %s", key, before, id))
	}
	if key != "" {
		s.seen.keys[key] = id
	}
}

// clients is how many clients call the API at a time.
const clients = 3

// call lets clients call the API until hangUp is called. A server that dies does not answer them.
func (s *trial) call(number int) (hangUp func()) {
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}
	var group sync.WaitGroup
	for n := range clients {
		c := &client{s, &http.Client{Transport: transport}, rand.New(rand.NewPCG(uint64(number), uint64(n))), nil}
		group.Go(func() {
			for call := 0; ctx.Err() == nil; call++ {
				c.step(ctx, fmt.Sprintf("key-%d-%d-%d", number, n, call/2)) // each key is given twice
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
		transport.CloseIdleConnections()
	}
}

// client calls the API.
type client struct {
	*trial
	*http.Client
	*rand.Rand
	made []string
}

func (c *client) step(ctx context.Context, key string) {
	if len(c.made) > 0 && c.IntN(3) == 0 {
		id := c.made[c.IntN(len(c.made))]
		if c.IntN(2) == 0 {
			if status, _ := c.ask(ctx, "DELETE", "/retry-tasks/"+id, nil); status == http.StatusNoContent {
				c.mutex.Lock()
				c.seen.cancelled[id] = true
				c.mutex.Unlock()
			}
			return
		}
		c.ask(ctx, "POST", "/retry-tasks/"+id+"/requeue", nil)
		return
	}
	body := map[string]any{
		"idempotencyKey": key, "policy": map[string]any{"maxAttempts": 4, "backoff": "constant:5ms"},
		"targetUrl": c.target, "bodyJson": map[string]any{"n": 1}, "timeoutMs": 300,
	}
	status, answer := c.ask(ctx, "POST", "/retry-tasks", body)
	switch {
	case status == 0: // it died, or was about to
	case status != http.StatusCreated && status != http.StatusOK:
		c.fail("POST with the key %s: got %d %s", key, status, answer)
	default:
		var made struct{ TaskID, IdempotencyKey string }
		if err := json.Unmarshal(answer, &made); err != nil {
			c.fail("POST: got %s", answer)
		}
		c.acknowledged(made.TaskID, key)
		c.made = append(c.made[max(0, len(c.made)-20):], made.TaskID)
	}
}

// ask returns status 0 where there is no whole answer.
func (c *client) ask(ctx context.Context, method, path string, body any) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if body == nil {
		text = nil
	}
	r, err2 := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(text))
	if err != nil || err2 != nil {
		c.fail("%v, %v", err, err2)
		return 0, nil
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	reply, err := c.Do(r)
	if err != nil {
		select {
		case <-time.After(2 * time.Millisecond): // it may have just begun
		case <-ctx.Done():
		}
		return 0, nil
	}
	defer func() { _ = reply.Body.Close() }()
	if answer, err = io.ReadAll(reply.Body); err != nil {
		return 0, nil
	}
	if !slices.Contains([]int{200, 201, 202, 204, 404, 409}, reply.StatusCode) {
		c.fail("%s %s: got %d %s", method, path, reply.StatusCode, answer)
	}
	return reply.StatusCode, answer
}

// checkSent finds every kind of error, and none in a correct run.
func TestCheckSent(t *testing.T) {
	tests := map[string]struct {
		spoil func(l *taskHistory)
		want  string
	}{
		"sound":         {spoil: func(*taskHistory) {}},
		"crash unseen":  {spoil: func(l *taskHistory) { l.sent = slices.Delete(l.sent, 1, 2) }},
		"sent twice":    {spoil: func(l *taskHistory) { l.sent = append(l.sent, l.sent[1]) }, want: "attempt 2 was sent twice"},
		"not recorded":  {spoil: func(l *taskHistory) { l.attempts = l.attempts[:2] }, want: "has no attempt 3"},
		"another key":   {spoil: func(l *taskHistory) { l.sent[0].key = "other" }, want: "the key is"},
		"beside":        {spoil: func(l *taskHistory) { l.sent[1].beside = "attempt 3" }, want: "its worker lived"},
		"another reply": {spoil: func(l *taskHistory) { l.sent[0].status = 404 }, want: "the journal has status 500"},
		"never sent":    {spoil: func(l *taskHistory) { l.sent = l.sent[:2] }, want: "the journal has status 200"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			attempt := func(n, status int) task.Attempt {
				return task.Attempt{Number: n, Outcome: task.Outcome{Reply: &task.Reply{Status: status}}}
			}
			l := &taskHistory{
				record: record{&task.Task{ID: "t", IdempotencyKey: "k", Queue: task.QueueWorker, Status: task.Succeeded,
					AttemptCount: 3, Target: &request.Request{}},
					[]task.Attempt{attempt(1, 500), {Number: 2, Outcome: task.Crashed()}, attempt(3, 200)}},
				sent: []delivery{{task: "t", attempt: 1, key: "k", status: 500}, {task: "t", attempt: 2, key: "k", status: 200},
					{task: "t", attempt: 3, key: `"k"`, status: 200}},
			}
			test.spoil(l)
			l.checkSent()
			switch got := strings.Join(l.problems, "\n"); {
			case test.want == "" && got != "":
				t.Errorf("got %s, want no problem", got)
			case !strings.Contains(got, test.want):
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
