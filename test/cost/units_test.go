//go:build linux && cgo

package cost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
	"github.com/10f93571/retry/test/cost/count"
)

// fill makes a store with tasks that wait until tomorrow: requests and commands in turn.
func (b *bench) fill(tasks int) string {
	dir := filepath.Join(b.scratch, fmt.Sprint("filled", tasks))
	if tasks == 0 {
		b.add(dir, nil)
		return dir
	}
	all := make([]*task.Task, tasks)
	for i := range all {
		all[i] = b.task(i%2 == 0)
		all[i].NextAttemptAt = time.Now().Add(24 * time.Hour)
	}
	b.add(dir, all)
	return dir
}

func (b *bench) task(isRequest bool) *task.Task {
	t := storetest.NewTask()
	t.CreatedAt, t.Queue, t.Command = time.Now(), task.QueueWorker, []string{"true"}
	t.History.Began = t.CreatedAt
	if isRequest {
		t.Kind, t.Command = request.Kind, nil
		t.Target = &request.Request{Method: "POST", URL: b.target.URL, Keyed: true,
			Header: []string{"Content-Type: application/json"}, Body: []request.Part{{Text: make([]byte, 256)}}}
	}
	return t
}

func (b *bench) add(dir string, tasks []*task.Task) (numbers []int64) {
	q, err := sqlite.OpenQueue(context.Background(), dir)
	testkit.Must(b, err)
	for len(tasks) > 0 {
		n := min(1000, len(tasks))
		added, err := q.Add(context.Background(), tasks[:n])
		testkit.Must(b, err)
		for _, a := range added {
			numbers = append(numbers, a.Task.Number)
		}
		tasks = tasks[n:]
	}
	testkit.Must(b, q.Close())
	return numbers
}

func addRequests(b *bench, dir string, n int) { b.addSome(dir, n, true) }
func addCommands(b *bench, dir string, n int) { b.addSome(dir, n, false) }

// addPage adds more than fit on a page, so that it is full in each store.
func addPage(b *bench, dir string, _ int) { b.addSome(dir, 60, true) }

func (b *bench) addSome(dir string, n int, isRequest bool) {
	var tasks []*task.Task
	for range n {
		tasks = append(tasks, b.task(isRequest))
	}
	var numbers []string
	for _, number := range b.add(dir, tasks) {
		numbers = append(numbers, strconv.FormatInt(number, 10))
	}
	testkit.Write(b, filepath.Join(filepath.Dir(dir), "numbers"), strings.Join(numbers, " "))
}

// claims and settles count what the store does in this process; settles have claimed before.
func claims(b *bench, dir string, _ int) costs  { return b.carried(dir, false) }
func settles(b *bench, dir string, _ int) costs { return b.carried(dir, true) }

func (b *bench) carried(dir string, settle bool) (got costs) {
	q, err := sqlite.OpenQueue(context.Background(), dir)
	testkit.Must(b, err)
	worker, err := q.Register(context.Background(), state.Worker{Name: "cost"})
	testkit.Must(b, err)
	var claimed []*task.Task
	claimAll := func() {
		for _, text := range strings.Fields(testkit.Contents(b, filepath.Join(filepath.Dir(dir), "numbers"))) {
			number, err := strconv.ParseInt(text, 10, 64)
			testkit.Must(b, err)
			tasks, err := q.Claim(context.Background(), worker, []int64{number}, time.Now(), nil)
			testkit.Must(b, err)
			claimed = append(claimed, tasks...)
		}
	}
	settleAll := func() {
		for _, t := range claimed {
			t.BeginAttempt()
			a := task.Attempt{Number: t.AttemptCount, StartedAt: time.Now(), Outcome: task.Outcome{
				Reply: &task.Reply{Status: 204, Written: 1}, Duration: time.Millisecond,
			}, Decision: task.Decision{Verdict: task.VerdictSucceeded}}
			t.ApplyDecision(a, time.Now())
			testkit.Must(b, q.Settle(context.Background(), t, a, nil))
		}
	}
	if settle {
		claimAll()
		got = b.counted(settleAll)
	} else {
		got = b.counted(claimAll)
	}
	testkit.Must(b, q.Close())
	return got
}

// counted is what happens in this process meanwhile.
func (b *bench) counted(do func()) costs {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	first := count.Read()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	last := count.Read()
	for _, text := range last.Texts {
		b.texts[text] = true
	}
	return costs{float64(last.Statements - first.Statements), float64(last.Steps - first.Steps),
		float64(last.Scanned - first.Scanned), float64(last.Log - first.Log), -1,
		float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)}
}

// deliver has a worker carry what is due, one at a time: what it has in hand together goes into one transaction.
func deliver(b *bench, dir string, _ int) costs {
	return b.do(dir, "worker", "--drain=due", "--concurrency", "1", "--allow-target", "127.0.0.0/8", "-q")
}

func process(args ...string) func(*bench, string, int) costs {
	return func(b *bench, dir string, _ int) costs { return b.do(dir, args...) }
}

func attempts(b *bench, dir string, n int) costs {
	return b.do(dir, "-n", strconv.Itoa(n), "-b", "constant:0", "--", "false")
}

func requests(b *bench, dir string, _ int) costs { return b.do(dir, "http", b.target.URL) }

const oneTask = `{"targetUrl": "http://127.0.0.1:9/hook", "bodyJson": {"n": 1}, "delayMs": 3600000}`

func creates(b *bench, dir string, n int) costs {
	return b.served(dir, n, http.MethodPost, "/retry-tasks", oneTask, http.StatusCreated)
}

func batches(b *bench, dir string, n int) costs {
	return b.served(dir, n, http.MethodPost, "/retry-tasks:batch",
		`{"tasks": [`+strings.Repeat(oneTask+",", 999)+oneTask+`]}`, http.StatusCreated)
}

func pages(b *bench, dir string, n int) costs {
	return b.served(dir, n, http.MethodGet, "/retry-tasks?limit=50", "", http.StatusOK)
}

// served counts what a server does that is asked n times.
func (b *bench) served(dir string, n int, method, path, body string, want int) costs {
	socket := filepath.Join(filepath.Dir(dir), "api")
	cmd, out := b.command(dir, "serve", "--listen", "unix:"+socket, "--no-worker", "--allow-target", "127.0.0.0/8", "-q")
	testkit.Must(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test ends before
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	testkit.Eventually(b, "it listens", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	for range n {
		r, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader([]byte(body)))
		testkit.Must(b, err)
		r.Header.Set("Content-Type", "application/json")
		reply, err := client.Do(r)
		testkit.Must(b, err)
		answer, err := io.ReadAll(reply.Body)
		testkit.Must(b, err, reply.Body.Close())
		if reply.StatusCode != want {
			b.Fatalf("%s %s: got status %d, want %d\n%s", method, path, reply.StatusCode, want, answer)
		}
	}
	client.CloseIdleConnections()
	testkit.Must(b, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	return b.reported(out)
}
