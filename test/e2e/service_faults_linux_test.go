package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// serviceTest runs a server, with a target that answers when it is told to.
type serviceTest struct {
	*journalTest
	api    *http.Client
	target *httptest.Server

	mutex sync.Mutex
	got   map[string]int // requests by task and attempt
	open  chan struct{}  // closed: requests are answered
}

func newServiceTest(t *testing.T) *serviceTest {
	s := &serviceTest{journalTest: newJournalTest(t), got: map[string]int{}, open: make(chan struct{})}
	s.target = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.mutex.Lock()
		s.got[r.Header.Get("Retry-Task-Id")+" "+r.Header.Get("Retry-Attempt")]++
		open := s.open
		s.mutex.Unlock()
		select {
		case <-open:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { s.target.CloseClientConnections(); s.target.Close() })
	socket := filepath.Join(t.TempDir(), "api")
	s.api = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	s.env = append(s.env, "RETRY_LISTEN=unix:"+socket, "RETRY_ALLOW_TARGET=127.0.0.0/8")
	return s
}

// start starts retry, after a line of sh, and waits for its first word if it is a server.
func (s *serviceTest) start(before string, args ...string) *exec.Cmd {
	s.Helper()
	self, err := os.Executable()
	testkit.Must(s, err)
	cmd := exec.Command("sh", append([]string{"-c", before + ` exec -a retry "$0" "$@"`, self}, args...)...)
	cmd.Args[0] = "bash"
	cmd.Path, err = exec.LookPath("bash") // for exec -a: the program looks at its name
	testkit.Must(s, err)
	cmd.Env = append(append(os.Environ(), "RETRY_STATE_DIR="+s.state), s.env...)
	said, w, err := os.Pipe()
	testkit.Must(s, err)
	cmd.Stderr = w
	testkit.Must(s, cmd.Start())
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_ = w.Close()
	if args[0] == "serve" {
		_, err = said.Read(make([]byte, 1))
		testkit.Must(s, err)
	}
	go func() {
		all, _ := io.ReadAll(said)
		if text := string(all); strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
			s.Errorf("%q said %s", args, text)
		}
	}()
	return cmd
}

func (s *serviceTest) ask(method, path string, body any) (*http.Response, string) {
	s.Helper()
	text, err := json.Marshal(body)
	testkit.Must(s, err)
	r, err := http.NewRequestWithContext(s.Context(), method, "http://localhost"+path, bytes.NewReader(text))
	testkit.Must(s, err)
	r.Header.Set("Content-Type", "application/json")
	reply, err := s.api.Do(r)
	testkit.Must(s, err)
	defer func() { _ = reply.Body.Close() }()
	answer, err := io.ReadAll(reply.Body)
	testkit.Must(s, err)
	return reply, string(answer)
}

// post hands a task over and returns the status.
func (s *serviceTest) post() (status int, answer string, retryAfter string) {
	s.Helper()
	r, answer := s.ask("POST", "/retry-tasks", map[string]any{
		"targetUrl": s.target.URL, "body": strings.Repeat("x", 8000), "policy": map[string]any{"maxAttempts": 1},
		"timeoutMs": 120_000,
	})
	return r.StatusCode, answer, r.Header.Get("Retry-After")
}

func (s *serviceTest) posts(count int) {
	s.Helper()
	for range count {
		if status, answer, _ := s.post(); status != http.StatusCreated {
			s.Fatalf("got %d %s, want %d", status, answer, http.StatusCreated)
		}
	}
}

func (s *serviceTest) requests() (n int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, times := range s.got {
		n += times
	}
	return n
}

func (s *serviceTest) await(requests int) {
	s.Helper()
	testkit.Eventually(s, fmt.Sprintf("%d requests", requests), func() bool { return s.requests() >= requests })
}

// ended waits until so many tasks have succeeded and nothing is left.
func (s *serviceTest) ended(succeeded int) {
	s.Helper()
	var counts string
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		counts = s.run("retry", "metrics").stdout
		if strings.Contains(counts, fmt.Sprintf("retry_tasks{status=\"SUCCEEDED\"} %d\n", succeeded)) &&
			strings.Contains(counts, `retry_tasks{status="PENDING"} 0`) {
			return
		}
	}
	s.Fatalf("got %s, want %d that succeeded and none that waits", counts, succeeded)
}

// once checks that each attempt was sent once, and how many there were.
func (s *serviceTest) once(want int) {
	s.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for attempt, times := range s.got {
		if times != 1 {
			s.Errorf("got the attempt %s %d times, want once", attempt, times)
		}
	}
	if len(s.got) != want {
		s.Errorf("got %d attempts, want %d: %v", len(s.got), want, slices.Sorted(maps.Keys(s.got)))
	}
}

func (s *serviceTest) answer() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(s.open)
}

// ready returns the status of the readiness.
func (s *serviceTest) ready() (status int, answer string) {
	r, answer := s.ask("GET", "/readyz", nil)
	return r.StatusCode, answer
}

// A server on a full disk refuses tasks and says that it is not ready. What it has accepted goes on: outcomes are written
// where there is room, and nothing is sent twice.
func TestServiceOnAFullDisk(t *testing.T) {
	s := newServiceTest(t)
	root := s.mount("48m")
	s.start("", "serve")
	const before = 40
	s.posts(before)
	s.await(16) // what goes to one host at a time
	if status, answer := s.ready(); status != http.StatusOK {
		t.Fatalf("got %d %s, want ready", status, answer)
	}
	filler := filepath.Join(root, "filler")
	file, err := os.Create(filler)
	testkit.Must(t, err)
	block := make([]byte, 4096)
	for {
		if _, err := file.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			break
		}
	}
	_ = file.Close()
	if status, answer := s.ready(); status != http.StatusServiceUnavailable || !strings.Contains(answer, "disk") {
		t.Errorf("readiness on a full disk: got %d %s, want 503 and the disk", status, answer)
	}
	refused, accepted := 0, 0
	for range 2000 {
		status, answer, after := s.post()
		if status == http.StatusCreated { // the journal has a reserve
			accepted++
			continue
		}
		if status != http.StatusServiceUnavailable || after == "" || !strings.Contains(answer, "problem") && !strings.Contains(answer, "full") {
			t.Errorf("got %d %s, Retry-After %q, want 503", status, answer, after)
		}
		if refused++; refused == 3 {
			break
		}
	}
	if refused == 0 {
		t.Errorf("got %d tasks accepted on a full disk, want some refused", accepted)
	}
	s.answer()
	testkit.Must(t, os.Remove(filler))
	s.ended(before + accepted)
	s.posts(1)
	s.ended(before + accepted + 1)
	s.once(before + accepted + 1)
	testkit.Eventually(t, "readiness", func() bool { status, _ := s.ready(); return status == http.StatusOK })
	t.Logf("%d of what came on the full disk found room in the reserve", accepted)
}

// A server that starts on a full disk carries what was accepted before, in the room of the reserve.
func TestServiceStartsOnAFullDisk(t *testing.T) {
	s := newServiceTest(t)
	root := s.mount("8m")
	s.answer()
	cmd := s.start("", "serve", "--no-worker")
	s.posts(5)
	testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	testkit.Must(t, cmd.Wait())
	s.fill(root)
	s.start("", "serve")
	s.await(5)
	s.ended(5)
	s.once(5)
}

// While another process holds the write lock, outcomes wait and POST answers 503; afterwards all goes on, and nothing was
// sent twice.
func TestServiceWhileTheJournalIsLocked(t *testing.T) {
	s := newServiceTest(t)
	s.start("", "serve")
	s.posts(10)
	s.await(10)
	held := t.TempDir()
	self, err := os.Executable()
	testkit.Must(t, err)
	hold := exec.Command(self, filepath.Join(s.state, "journal.db"))
	hold.Args[0], hold.Dir = "hold", held
	testkit.Must(t, hold.Start())
	testkit.Eventually(t, "the lock", func() bool { _, err := os.Stat(filepath.Join(held, "held")); return err == nil })
	testkit.Eventually(t, "readiness tells of the lock, before a task was refused", func() bool {
		status, answer := s.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(answer, "another process holds the lock")
	})
	s.answer()
	if status, answer, after := s.post(); status != http.StatusServiceUnavailable || after == "" {
		t.Errorf("got %d %s, Retry-After %q, want 503", status, answer, after)
	}
	time.Sleep(5 * time.Second) // ten in all: beyond the time that a write waits
	testkit.Must(t, hold.Process.Kill())
	_ = hold.Wait()
	s.ended(10)
	s.posts(1)
	s.ended(11)
	s.once(11)
}

// With few descriptors, attempts fail and are tried again, and clients wait: nothing is lost.
func TestServiceWithFewDescriptors(t *testing.T) {
	s := newServiceTest(t)
	s.answer()
	s.start("ulimit -n 48;", "serve", "--concurrency", "200", "--per-host", "200")
	var tasks []map[string]any
	for n := range 300 {
		tasks = append(tasks, map[string]any{
			"targetUrl": s.target.URL, "bodyJson": n, "policy": map[string]any{"maxAttempts": 1000, "backoff": "constant:50ms"},
		})
	}
	if r, answer := s.ask("POST", "/retry-tasks:batch", map[string]any{"tasks": tasks}); r.StatusCode != http.StatusCreated {
		t.Fatalf("got %d %s, want %d", r.StatusCode, answer, http.StatusCreated)
	}
	s.ended(300)
}

// A server that is told to end while its targets are slow cuts them off after the grace. They have used up nothing, and
// another worker sends them again.
func TestServiceEndsInMidFlight(t *testing.T) {
	s := newServiceTest(t)
	cmd := s.start("", "serve", "--grace", "300ms")
	s.posts(16)
	s.await(16)
	testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit 0", err)
	}
	waiting := s.run("retry", "metrics").stdout
	if want := "retry_tasks{status=\"PENDING\"} 16\n"; !strings.Contains(waiting, want) {
		t.Errorf("got %s, want %s", waiting, want)
	}
	s.answer()
	if r := s.run("retry", "worker", "--drain"); r.code != 0 {
		t.Errorf("drain: got exit %d, %s", r.code, r.stderr)
	}
	s.ended(16)
	s.once(32)
}

// Whoever looks at night reads why a task that is due does not run: its host is paused.
func TestStatusNamesAPausedHost(t *testing.T) {
	s := newServiceTest(t)
	s.start("", "serve")
	host := strings.TrimPrefix(s.target.URL, "http://")
	if r, answer := s.ask("PUT", "/targets/"+host, map[string]any{"paused": true}); r.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s, want %d", r.StatusCode, answer, http.StatusOK)
	}
	id := strings.TrimSpace(s.runCleanly("add", "http", s.target.URL).stdout)
	for _, args := range [][]string{{"status"}, {"status", id}, {"doctor"}} {
		if r := s.run("retry", args...); !strings.Contains(r.stdout, host+" is paused") {
			t.Errorf("retry %s: got %s, want that %s is paused", args, r.stdout, host)
		}
	}
	s.answer()
	if r, answer := s.ask("PUT", "/targets/"+host, map[string]any{}); r.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s, want %d", r.StatusCode, answer, http.StatusOK)
	}
	s.ended(1)
}

// A worker that stands still for longer than its lease loses its requests, and its late results are refused. Its command
// is not begun again.
func TestWorkerThatStandsStill(t *testing.T) {
	s := newServiceTest(t)
	s.env = append(s.env, "RETRY_VISIBILITY_TIMEOUT=2s")
	first := s.start("", "worker")
	const requests = 8
	for range requests {
		s.runCleanly("add", "-n", "1", "--timeout", "2m", "http", "-X", "PUT", "--json", "{}", s.target.URL)
	}
	began := filepath.Join(t.TempDir(), "began")
	s.runCleanly("add", "-n", "1", "--", "sh", "-c", "echo x >> "+began+"; sleep 6")
	s.await(requests)
	testkit.Eventually(t, "the command", func() bool { _, err := os.Stat(began); return err == nil })
	testkit.Must(t, first.Process.Signal(syscall.SIGSTOP))
	second := s.start("", "worker")
	s.await(2 * requests)
	s.answer() // both have their replies now, and the first reads them when it goes on
	testkit.Must(t, first.Process.Signal(syscall.SIGCONT))
	s.ended(requests + 1)
	s.once(2 * requests)
	if text := testkit.Contents(t, began); text != "x\n" {
		t.Errorf("got a command that began %d times, want once", strings.Count(text, "x"))
	}
	s.runCleanly("add", "-n", "1", "--", "true")
	s.ended(requests + 2)
	for _, cmd := range []*exec.Cmd{first, second} {
		testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Errorf("got %v, want exit 0", err)
		}
	}
}
