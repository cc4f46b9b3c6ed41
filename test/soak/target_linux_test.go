package soak

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// fate is what becomes of a task.
type fate struct {
	name  string
	share int         // of a hundred tasks
	want  task.Status // in the end
	reply func(attempt int) int
	takes time.Duration // at most
}

// The replies that are none.
const reset = 0

func always(status int) func(int) int { return func(int) int { return status } }

// after returns a reply for the first attempts, and then a success.
func after(attempts, status int) func(int) int {
	return func(attempt int) int {
		if attempt <= attempts {
			return status
		}
		return http.StatusNoContent
	}
}

func fates() []fate {
	return []fate{
		{name: "fine", share: 60, want: task.Succeeded, reply: always(http.StatusNoContent)},
		{name: "flaky", share: 12, want: task.Succeeded, reply: after(2, http.StatusInternalServerError)},
		{name: "limited", share: 6, want: task.Succeeded, reply: after(1, http.StatusTooManyRequests)},
		{name: "reset", share: 6, want: task.Succeeded, reply: after(1, reset)},
		{name: "slow", share: 6, want: task.Succeeded, reply: always(http.StatusNoContent), takes: 3 * time.Second},
		{name: "refused", share: 4, want: task.Failed, reply: always(http.StatusNotFound)},
		{name: "broken", share: 4, want: task.Exhausted, reply: always(http.StatusBadGateway)},
		{name: "dead", share: 1, want: task.Exhausted},
		{name: "mute", share: 1, want: task.Exhausted},
	}
}

// attempts is what the policy of every task has.
const attempts = 4

// target is where requests go: it logs what it has answered.
type target struct {
	*httptest.Server
	dead, mute string // addresses where nobody listens, and where nobody answers
	fates      map[string]fate

	mutex sync.Mutex
	log   map[string]map[int]int // statuses by task and attempt
	twice []string
}

func newTarget(t *testing.T) *target {
	n := &target{fates: map[string]fate{}, log: map[string]map[int]int{}}
	for _, f := range fates() {
		n.fates[f.name] = f
	}
	n.Server = httptest.NewServer(n)
	t.Cleanup(func() { n.CloseClientConnections(); n.Close() })
	n.dead = "127.0.0.1:1"                        // one that was free soon belongs to another test
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // the system takes connections, and nobody reads from them
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deaf.Close() })
	n.mute = deaf.Addr().String()
	return n
}

// url is where a task of a fate goes.
func (n *target) url(f fate, number int) string {
	switch f.name {
	case "dead":
		return "http://" + n.dead
	case "mute":
		return "http://" + n.mute
	}
	return fmt.Sprintf("%s/%s/%d", n.URL, f.name, number)
}

// ServeHTTP implements http.Handler.
func (n *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	f := n.fates[strings.Split(r.URL.Path, "/")[1]]
	id := r.Header.Get("Retry-Task-Id")
	attempt, _ := strconv.Atoi(r.Header.Get("Retry-Attempt"))
	if f.takes > 0 {
		select {
		case <-time.After(rand.N(f.takes)):
		case <-r.Context().Done():
		}
	}
	status := f.reply(attempt)
	n.note(id, attempt, status)
	switch status {
	case reset:
		panic(http.ErrAbortHandler)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
}

func (n *target) note(id string, attempt, status int) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.log[id] == nil {
		n.log[id] = map[int]int{}
	}
	if _, found := n.log[id][attempt]; found {
		n.twice = append(n.twice, fmt.Sprintf("attempt %d of %s", attempt, id))
	}
	n.log[id][attempt] = status
}
