package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// holder is a target that keeps its requests until it is told to answer.
type holder struct {
	*httptest.Server
	mutex   sync.Mutex
	seen    map[string]int // by task
	latest  time.Time
	arrived chan struct{}
	answer  chan struct{} // closed: requests are answered
}

func newHolder(t *testing.T) *holder {
	h := &holder{seen: map[string]int{}, arrived: make(chan struct{}, 100_000), answer: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.mutex.Lock()
		h.seen[r.Header.Get("Retry-Task-Id")]++
		h.latest = time.Now()
		h.mutex.Unlock()
		h.arrived <- struct{}{}
		select {
		case <-h.answer:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// await waits for so many requests.
func (h *holder) await(t *testing.T, count int, what string) {
	t.Helper()
	limit := time.After(patience)
	for n := range count {
		select {
		case <-h.arrived:
		case <-limit:
			t.Fatalf("%s: got %d requests, want %d", what, n, count)
		}
	}
}

// inHand is how many tasks a server has in hand when it is killed.
const inHand = 1000

// A server that is killed with 1,000 tasks in hand, and begun again, sends each of them once more: none is lost, and none
// has used up its only attempt. asynq leaves them for 75 s and more, and takes a retry from each; River for an hour.
func TestKilledWithTasksInHand(t *testing.T) {
	dir := t.TempDir()
	binary := build(t, dir)
	target := newHolder(t)
	s := newTrial(binary, dir, newTally(nil, 0))
	defer s.close()
	api := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	}}}
	first := s.serve(t)
	var tasks []map[string]any
	for n := range inHand {
		tasks = append(tasks, map[string]any{
			"targetUrl": target.URL, "bodyJson": n, "policy": map[string]any{"maxAttempts": 1}, "timeoutMs": 120_000,
		})
	}
	text, err := json.Marshal(map[string]any{"tasks": tasks})
	testkit.Must(t, err)
	r, err := api.Post("http://localhost/retry-tasks:batch", "application/json", bytes.NewReader(text))
	testkit.Must(t, err)
	var made struct{ Tasks []struct{ TaskID string } }
	testkit.Must(t, json.NewDecoder(r.Body).Decode(&made))
	_ = r.Body.Close()
	target.await(t, inHand, "before")

	killed := time.Now()
	testkit.Must(t, first.Process.Kill())
	_ = first.Wait()
	second := s.serve(t)
	target.await(t, 1, "after")
	back := time.Since(killed)
	target.await(t, inHand-1, "after")
	t.Logf("back at work %v after the kill, all %d sent again after %v", back.Round(time.Millisecond), inHand,
		target.latest.Sub(killed).Round(time.Millisecond))
	close(target.answer)
	s.command(t, process{args: workerArgs("--drain")}, false)
	testkit.Must(t, second.Process.Signal(syscall.SIGTERM))
	if err := second.Wait(); err != nil {
		t.Errorf("after TERM: got %v, want exit 0", err)
	}

	records, err := readRecords(s.journal())
	testkit.Must(t, err)
	ended := map[string]task.Status{}
	for _, r := range records {
		ended[r.ID] = r.Status
		if r.AttemptCount != 2 || r.History.Counted > 1 {
			t.Errorf("task %s: got %d attempts, want the one that was cut off and another", r.ID, r.AttemptCount)
		}
	}
	for _, m := range made.Tasks {
		if ended[m.TaskID] != task.Succeeded || target.seen[m.TaskID] != 2 {
			t.Errorf("task %s: got %s, sent %d times, want %s, sent twice", m.TaskID, ended[m.TaskID], target.seen[m.TaskID],
				task.Succeeded)
		}
	}
}

// serve starts a server, which says when it listens.
func (s *harness) serve(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(s.binary, "serve", "--listen", "unix:"+filepath.Join(s.dir, "api"), "--allow-target", "127.0.0.0/8",
		"--concurrency", fmt.Sprint(2*inHand), "--per-host", fmt.Sprint(2*inHand), "--grace", "5s")
	cmd.Env = append(os.Environ(), "RETRY_STATE_DIR="+s.journal())
	said, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	first := make([]byte, 1)
	_, err = said.Read(first)
	testkit.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return cmd
}
