package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/10f93571/retry/httpexec/request" // reads stored requests
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

var (
	tasksFlag = flag.Int("tasks", 2000, "how many `tasks` the service is given")
	timeFlag  = flag.Duration("time", 20*time.Second, "over which `time`")
	killFlag  = flag.Duration("kill", 4*time.Second, "how often one of the two workers is killed; 0 is never")
)

// soak is a service under load.
type soak struct {
	*testing.T
	*target
	binary, dir string
	api         *http.Client
	processes   [2]*exec.Cmd // a server and a worker
	kills       int

	mutex sync.Mutex
	made  map[string]fate // by task
}

func newSoak(t *testing.T) *soak {
	testkit.Slow(t, "it builds the program and has it work for a while")
	s := &soak{T: t, target: newTarget(t), dir: t.TempDir(), made: map[string]fate{}}
	s.binary = filepath.Join(s.dir, "retry")
	build := exec.Command("bash", filepath.Join("..", "..", ".ci", "release"), s.binary)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build retry: %v\n%s", err, said)
	}
	s.api = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 16,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.socket())
		},
	}}
	t.Cleanup(func() {
		for _, p := range s.processes {
			if p != nil {
				_ = p.Process.Kill()
				_ = p.Wait()
			}
		}
	})
	return s
}

func (s *soak) socket() string  { return filepath.Join(s.dir, "api") }
func (s *soak) journal() string { return filepath.Join(s.dir, "state") }

func (s *soak) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	cmd.Env = append(os.Environ(), "RETRY_STATE_DIR="+s.journal())
	return cmd
}

// start starts the server or the worker.
func (s *soak) start(n int) {
	s.Helper()
	args := []string{"worker"}
	if n == 0 {
		args = []string{"serve", "--listen", "unix:" + s.socket()}
	}
	cmd := s.command(append(args, "--allow-target", "127.0.0.0/8", "--per-host", "32", "-q")...)
	log, err := os.OpenFile(filepath.Join(s.dir, args[0]+".log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	testkit.Must(s, err)
	cmd.Stderr = log
	testkit.Must(s, cmd.Start())
	_ = log.Close()
	s.processes[n] = cmd
}

// ask returns status 0 where there is no whole answer.
func (s *soak) ask(method, path string, body any) (status int, header http.Header, answer []byte) {
	text, err := json.Marshal(body)
	testkit.Must(s, err)
	r, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader(text))
	testkit.Must(s, err)
	r.Header.Set("Content-Type", "application/json")
	reply, err := s.api.Do(r)
	if err != nil {
		return 0, nil, nil
	}
	defer func() { _ = reply.Body.Close() }()
	if answer, err = io.ReadAll(reply.Body); err != nil {
		return 0, nil, nil
	}
	return reply.StatusCode, reply.Header, answer
}

// add hands one task over, as often as it takes: its key makes it one task.
func (s *soak) add(f fate, number int) {
	body := map[string]any{
		"targetUrl": s.url(f, number), "bodyJson": map[string]int{"n": number}, "timeoutMs": 10_000,
		"idempotencyKey": fmt.Sprint("task-", number), "tags": []string{f.name},
		"policy": map[string]any{"maxAttempts": attempts, "backoff": "exp:100ms..2s"},
	}
	if f.name == "mute" {
		body["timeoutMs"] = 500
	}
	for {
		status, _, answer := s.ask("POST", "/retry-tasks", body)
		switch status {
		case http.StatusCreated, http.StatusOK:
			var made struct{ TaskID string }
			if err := json.Unmarshal(answer, &made); err != nil {
				s.Errorf("task %d: got %s", number, answer)
			}
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.made[made.TaskID] = f
			return
		case 0:
			time.Sleep(20 * time.Millisecond)
		default:
			s.Errorf("task %d: got %d %s", number, status, answer)
			return
		}
	}
}

// load hands tasks over at a steady rate.
func (s *soak) load(tasks int, over time.Duration) {
	var kinds []fate
	for _, f := range fates() {
		for range f.share {
			kinds = append(kinds, f)
		}
	}
	const hands = 8
	var group sync.WaitGroup
	began := time.Now()
	for hand := range hands {
		group.Go(func() {
			for n := hand; n < tasks; n += hands {
				time.Sleep(time.Until(began.Add(over * time.Duration(n) / time.Duration(tasks))))
				s.add(kinds[n*37%len(kinds)], n)
			}
		})
	}
	group.Wait()
}

// killer kills the server and the worker in turn until stop is closed.
func (s *soak) killer(stop <-chan struct{}) {
	for n := 0; *killFlag > 0; n++ {
		select {
		case <-time.After(*killFlag):
		case <-stop:
			return
		}
		victim := s.processes[n%2]
		_ = victim.Process.Kill()
		_ = victim.Wait()
		s.start(n % 2)
		s.kills++
	}
}

// settle waits until every task has ended.
func (s *soak) settle() {
	s.Helper()
	const patience = 2 * time.Minute
	for limit := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		m := s.metrics()
		if m != nil && m[`retry_tasks{status="PENDING"}`]+m[`retry_tasks{status="IN_FLIGHT"}`] == 0 {
			return
		}
		if time.Now().After(limit) {
			s.Fatalf("tasks have not ended: %v", m)
		}
	}
}

// metrics returns what the server shows; nil where it does not answer.
func (s *soak) metrics() map[string]float64 {
	status, _, answer := s.ask("GET", "/metrics", nil)
	if status != http.StatusOK {
		return nil
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(answer)); lines.Scan(); {
		line := lines.Text()
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			values[line[:at]], _ = strconv.ParseFloat(line[at+1:], 64)
		}
	}
	return values
}

// record is a task as the journal has it.
type record struct {
	*task.Task
	attempts []task.Attempt
}

func (s *soak) records() (list []record) {
	s.Helper()
	ctx := context.Background()
	j, err := sqlite.Open(ctx, s.journal())
	testkit.Must(s, err)
	defer func() { testkit.Must(s, j.Close()) }()
	for t, err := range j.All(ctx, state.Filter{}) {
		testkit.Must(s, err)
		attempts, err := j.Attempts(ctx, t.Number)
		testkit.Must(s, err)
		list = append(list, record{t, attempts})
	}
	return list
}

// TestSoak has two workers carry tasks while one of them is killed every few seconds. Every task that was acknowledged
// ends as the log of its target says.
func TestSoak(t *testing.T) {
	s := newSoak(t)
	s.start(0)
	s.start(1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); s.killer(stop) }()
	began := time.Now()
	s.load(*tasksFlag, *timeFlag)
	close(stop)
	<-stopped
	s.settle()
	took := time.Since(began)
	m := s.metrics()
	records := s.records()
	ended := s.compare(records)
	s.compareCounts(m, ended)
	s.shut()
	sent := 0
	for _, of := range s.log {
		sent += len(of)
	}
	t.Logf("%d tasks in %v, %d kills: %v; %d requests answered, %d attempts cut off by a kill, latest %v after the last add",
		len(s.made), took.Round(time.Second), s.kills, ended, sent, crashes(records), (took - *timeFlag).Round(time.Second))
}

// TestCountersAgree has one server work without kills: its counters and histograms agree with the log of the target to
// the last attempt. Those of a process that is killed die with it.
func TestCountersAgree(t *testing.T) {
	s := newSoak(t)
	s.start(0)
	const tasks = 500
	s.load(tasks, 2*time.Second)
	s.settle()
	m := s.metrics()
	records := s.records()
	s.compareCounts(m, s.compare(records))
	outcomes, made := map[string]int{}, 0
	for _, r := range records {
		made += len(r.attempts)
		for _, a := range r.attempts {
			outcomes[map[task.Verdict]string{
				task.VerdictSucceeded: "success", task.VerdictRetry: "retry", task.VerdictFailed: "failed",
				task.VerdictExhausted: "exhausted",
			}[a.Decision.Verdict]]++
		}
	}
	for outcome, want := range outcomes {
		if got := m[fmt.Sprintf(`retry_attempts_total{outcome=%q,policy="inline"}`, outcome)]; int(got) != want {
			t.Errorf("attempts with the outcome %s: got %v, want %d", outcome, got, want)
		}
	}
	for name, want := range map[string]int{
		"retry_task_age_seconds_count": tasks, `retry_attempt_duration_seconds_count{policy="inline"}`: made,
		"retry_schedule_lateness_seconds_count": made, `retry_delay_seconds_count{policy="inline"}`: outcomes["retry"],
		"retry_inflight": 0, "retry_tasks_due": 0,
	} {
		if got := int(m[name]); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	s.shut()
}

// shut ends the processes as systemd does.
func (s *soak) shut() {
	s.Helper()
	for n, p := range s.processes {
		if p == nil {
			continue
		}
		_ = p.Process.Signal(syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			s.Errorf("process %d: got %v after a signal, want exit 0", n, err)
		}
		s.processes[n] = nil
	}
}

func crashes(records []record) (n int) {
	for _, r := range records {
		for _, a := range r.attempts {
			if a.Outcome.IsCrash() {
				n++
			}
		}
	}
	return n
}

// compare compares the journal with the log of the target, and counts the ends.
func (s *soak) compare(records []record) map[task.Status]int {
	ended := map[task.Status]int{}
	found := map[string]bool{}
	for _, r := range records {
		found[r.ID] = true
		ended[r.Status]++
		f, known := s.made[r.ID]
		if !known {
			s.Errorf("task %s was never acknowledged, and each add was repeated until it was", r.ID)
			continue
		}
		if err := s.check(r, f); err != nil {
			s.Errorf("task %s (%s): %v", r.ID, f.name, err)
		}
	}
	for id, f := range s.made {
		if !found[id] {
			s.Errorf("the task %s (%s) is lost", id, f.name)
		}
	}
	if len(s.twice) > 0 {
		s.Errorf("got attempts that were sent twice: %q", s.twice)
	}
	return ended
}

func (s *soak) check(r record, f fate) error {
	if r.Status != f.want {
		return fmt.Errorf("got %s (%s), want %s", r.Status, r.Reason, f.want)
	}
	log, counted := s.log[r.ID], 0
	for n, a := range r.attempts {
		if a.Number != n+1 {
			return fmt.Errorf("got the attempt %d at place %d", a.Number, n+1)
		}
		if a.Outcome.IsCrash() {
			continue
		}
		if a.Decision.Verdict != task.VerdictInterrupted { // as what stood still between its claim and its request
			counted++
		}
		status, sent := log[a.Number]
		if reply := a.Outcome.Reply; reply != nil && reply.Status != 0 && (!sent || status != reply.Status) {
			return fmt.Errorf("attempt %d has the status %d, the target %d", a.Number, reply.Status, status)
		}
	}
	for number := range log {
		if number < 1 || number > len(r.attempts) {
			return fmt.Errorf("the target got an attempt %d of %d", number, len(r.attempts))
		}
	}
	switch {
	case f.want == task.Exhausted && counted != attempts:
		return fmt.Errorf("exhausted after %d attempts, want %d", counted, attempts)
	case f.want == task.Succeeded && log[r.AttemptCount] != http.StatusNoContent:
		return errors.New("succeeded, and the target has sent no success")
	}
	return nil
}

// compareCounts compares what the server and the command line count with the journal.
func (s *soak) compareCounts(m map[string]float64, ended map[task.Status]int) {
	s.Helper()
	for _, status := range []task.Status{task.Succeeded, task.Failed, task.Exhausted, task.Cancelled} {
		if got := int(m[fmt.Sprintf("retry_tasks{status=%q}", status)]); got != ended[status] {
			s.Errorf("%s: /metrics has %d, want %d", status, got, ended[status])
		}
	}
	if got := int(m[`retry_dead_letters{policy="inline"}`]); got != ended[task.Failed]+ended[task.Exhausted] {
		s.Errorf("dead letters: got %d, want %d", got, ended[task.Failed]+ended[task.Exhausted])
	}
	text, err := s.command("metrics").Output()
	testkit.Must(s, err)
	for status, want := range ended {
		if line := fmt.Sprintf("retry_tasks{status=%q} %d\n", status, want); !strings.Contains(string(text), line) {
			s.Errorf("retry metrics: want the line %q in\n%s", line, text)
		}
	}
	text, err = s.command("status", "--json", "--failed", "--limit", "0").Output()
	testkit.Must(s, err)
	var list struct {
		Tasks []struct{ Status task.Status }
	}
	testkit.Must(s, json.Unmarshal(text, &list))
	if got, want := len(list.Tasks), ended[task.Failed]+ended[task.Exhausted]; got != want {
		s.Errorf("retry status --failed: got %d tasks, want %d", got, want)
	}
}
