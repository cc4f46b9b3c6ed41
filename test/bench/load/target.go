package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Target is a server on loopback that notes when each task's requests arrive.
type Target struct {
	URL    string // without a slash at its end
	server *http.Server
	mu     sync.Mutex
	rounds []*Round
}

// Round is the log of arrivals of tasks that were made together.
type Round struct {
	target   *Target
	number   int
	reply    func(arrival int, gone <-chan struct{}) int
	mu       sync.Mutex
	arrivals [][]time.Time   // by task
	reached  []int           // [k] tasks that have come more than k times
	waiting  []chan struct{} // [k] is closed when all tasks have come more than k times
}

// NewTarget starts a server on a free port.
func NewTarget() (*Target, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the target: %w", err)
	}
	t := &Target{URL: "http://" + listener.Addr().String()}
	t.server = &http.Server{Handler: t, ReadHeaderTimeout: time.Minute}
	go func() { _ = t.server.Serve(listener) }() // ends with Close
	return t, nil
}

// Host is the address that the requests go to.
func (t *Target) Host() string { return strings.TrimPrefix(t.URL, "http://") }

// Close cuts all connections.
func (t *Target) Close() error { return t.server.Close() }

// Begin makes a round of tasks. Every request is answered with 204, unless reply says otherwise: it gets which arrival
// of the task this is, from 1, and a channel that is closed when the sender has gone.
func (t *Target) Begin(tasks int, reply func(arrival int, gone <-chan struct{}) int) *Round {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Round{target: t, number: len(t.rounds), reply: reply, arrivals: make([][]time.Time, tasks)}
	t.rounds = append(t.rounds, r)
	return r
}

// URL is where the request of a task goes.
func (r *Round) URL(task int) string { return fmt.Sprintf("%s/%d/%d", r.target.URL, r.number, task) }

// ServeHTTP notes an arrival.
func (t *Target) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	now := time.Now()
	number, task, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	i, wrongRound := strconv.Atoi(number)
	n, wrongTask := strconv.Atoi(task)
	if errors.Join(wrongRound, wrongTask) != nil || request.Method != http.MethodPost ||
		request.ContentLength != int64(len(Body)) {
		http.Error(w, "not a task of the benchmark", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	var r *Round
	if i >= 0 && i < len(t.rounds) {
		r = t.rounds[i]
	}
	t.mu.Unlock()
	if r == nil || n < 0 || n >= len(r.arrivals) {
		http.NotFound(w, request)
		return
	}
	arrival, status := r.note(n, now), http.StatusNoContent
	if r.reply != nil {
		status = r.reply(arrival, request.Context().Done())
	}
	w.WriteHeader(status)
}

// note returns which arrival of the task this is, from 1.
func (r *Round) note(task int, at time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals[task] = append(r.arrivals[task], at)
	k := len(r.arrivals[task])
	r.grow(k)
	r.reached[k-1]++
	if r.reached[k-1] == len(r.arrivals) {
		close(r.waiting[k-1])
	}
	return k
}

func (r *Round) grow(k int) {
	for len(r.reached) < k {
		r.reached, r.waiting = append(r.reached, 0), append(r.waiting, make(chan struct{}))
	}
}

// Wait returns the number of tasks that have come at least the given number of times. This is all of them, unless the
// patience or the context ended before.
func (r *Round) Wait(ctx context.Context, times int, patience time.Duration) (int, error) {
	r.mu.Lock()
	r.grow(times)
	all := r.waiting[times-1]
	r.mu.Unlock()
	var err error
	select {
	case <-all:
	case <-time.After(patience):
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached[times-1], err
}

// Arrivals are the times at which each task came the k-th time, from 1. Tasks that have not are left out.
func (r *Round) Arrivals(k int) (tasks []int, at []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for task, arrivals := range r.arrivals {
		if len(arrivals) >= k {
			tasks, at = append(tasks, task), append(at, arrivals[k-1])
		}
	}
	return tasks, at
}
