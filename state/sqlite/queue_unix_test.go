//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/wake"
	"github.com/10f93571/retry/task"
)

// actOnQueue is act for the orders that are about a queue.
func (a *actor) actOnQueue(verb, arg string) (answer string, err error) {
	ctx := context.Background()
	switch verb {
	case "queue":
		a.queue, err = OpenQueue(ctx, arg)
	case "add":
		var added []state.Added
		if added, err = a.queue.Add(ctx, []*task.Task{queuedRequest(0)}); err == nil {
			return added[0].Task.ID, nil
		}
	case "listen":
		a.changes = a.queue.Changes(ctx)
	case "hear": // the next change that says something
		for c := range a.changes {
			if !c.Precaution {
				return fmt.Sprint("lost ", c.Lost, " id ", c.ID), nil
			}
		}
	case "register":
		a.worker, err = a.queue.Register(ctx, state.Worker{Name: "puppet"})
		return strconv.FormatInt(a.worker, 10), err
	case "lock": // until the puppet ends
		_, err = rawExec(a.queue.Journal, "BEGIN IMMEDIATE")
	case "unlock":
		_, err = rawExec(a.queue.Journal, "ROLLBACK")
	case "carry":
		return "", a.carry()
	default:
		err = fmt.Errorf("unknown order %q", verb)
	}
	return "done", err
}

// carry adds tasks in threes, claims and settles them, until it is killed. Each line acknowledges a commit.
func (a *actor) carry() error {
	ctx := context.Background()
	for {
		added, err := a.queue.Add(ctx, []*task.Task{queuedRequest(0), queuedRequest(1), queuedRequest(2)})
		if err != nil {
			return err
		}
		var numbers []int64
		for _, one := range added {
			numbers = append(numbers, one.Task.Number)
			_, _ = fmt.Fprintln(a.answers, "added", one.Task.ID)
		}
		claimed, err := a.queue.Claim(ctx, a.worker, numbers, time.Now(), nil)
		if err != nil {
			return err
		}
		for _, tk := range claimed {
			_, _ = fmt.Fprintln(a.answers, "claimed", tk.ID)
		}
		for _, tk := range claimed {
			tk.BeginAttempt()
			if err := settleSucceeded(a.queue, tk); err != nil {
				return err
			}
			_, _ = fmt.Fprintln(a.answers, "settled", tk.ID)
		}
	}
}

// settleSucceeded ends the attempt of a claimed task well.
func settleSucceeded(q *Queue, claimed *task.Task) error {
	t := *claimed
	a := task.Attempt{Number: t.AttemptCount, Outcome: exit(0), Decision: succeeded}
	t.ApplyDecision(a, time.Now())
	return q.Settle(context.Background(), &t, a, nil)
}

// queueIn opens the queue in a directory.
func queueIn(t *testing.T, dir string) *Queue {
	t.Helper()
	q, err := OpenQueue(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	return q
}

// Two containers may have one host name, and both be process 1: attempts tell by its name which worker carries them.
func TestWorkersOfOneName(t *testing.T) {
	dir := t.TempDir()
	a, b := queueIn(t, dir), queueIn(t, dir)
	var numbers []int64
	for _, q := range []*Queue{a, b, a} {
		number, err := q.Register(t.Context(), state.Worker{Name: "host:1"})
		must(t, err)
		numbers = append(numbers, number)
	}
	must(t, a.Unregister(t.Context(), numbers[0]))
	_, err := b.Register(t.Context(), state.Worker{Name: "host:1"})
	must(t, err)
	workers, err := a.ListWorkers(t.Context())
	must(t, err)
	var names []string
	for _, w := range workers {
		names = append(names, w.Name)
	}
	if got := strings.Join(names, " "); got != "host:1.2 host:1.3 host:1" {
		t.Errorf("got %s, want host:1.2 host:1.3 host:1", got)
	}
}

// heard returns the next change that says something.
func heard(t *testing.T, changes <-chan state.Change) state.Change {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case c := <-changes:
			if !c.Precaution {
				return c
			}
		case <-timeout:
			t.Fatal("got no change, want one")
		}
	}
}

// A process hears at once what another one has done, wherever the journal is: the name of a socket is short.
func TestAnotherProcessIsHeard(t *testing.T) {
	for _, length := range []int{0, 200} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			dir := t.TempDir()
			if length > 0 {
				if runtime.GOOS != "linux" {
					t.Skip("a longer name than that of a socket has a shorter one on Linux alone")
				}
				dir = filepath.Join(dir, strings.Repeat("d", length-len(dir)-1))
			}
			q := queueIn(t, dir)
			changes := q.Changes(t.Context())
			p := startPuppet(t)
			p.ask("queue", dir)
			id := p.ask("add")
			if c := heard(t, changes); c.ID != id || c.Lost || c.Status != task.Pending || c.Host == "" {
				t.Errorf("got %+v, want task %s", c, id)
			}
			p.ask("listen")
			added, err := q.Add(t.Context(), []*task.Task{queuedRequest(0)})
			must(t, err)
			if got, want := p.ask("hear"), "lost false id "+added[0].Task.ID; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// What a killed process leaves of its socket goes with the next change.
func TestTheSocketOfAKilledProcessGoes(t *testing.T) {
	q := openQueue(t)
	q.Changes(t.Context())
	p := startPuppet(t)
	p.ask("queue", q.dir)
	p.ask("listen")
	sockets := filepath.Join(q.dir, wake.DirName)
	if got := testkit.Names(t, sockets); len(got) != 2 {
		t.Fatalf("got sockets %q, want two", got)
	}
	p.kill()
	_, err := q.Add(t.Context(), []*task.Task{queuedRequest(0)})
	must(t, err)
	testkit.Eventually(t, "the socket is removed", func() bool { return len(testkit.Names(t, sockets)) == 1 })
	if got, want := testkit.Names(t, sockets)[0], fmt.Sprint(os.Getpid()); !strings.HasPrefix(got, want) {
		t.Errorf("got the socket %s left, want that of process %s", got, want)
	}
}

// A process that stands still holds nobody up, and learns afterwards that it has missed something.
func TestAProcessThatStandsStill(t *testing.T) {
	q := openQueue(t)
	p := startPuppet(t)
	p.ask("queue", q.dir)
	p.ask("listen")
	must(t, syscall.Kill(p.pid(), syscall.SIGSTOP))
	const count = 1000 // more than its socket holds
	for range count {
		_, err := q.Add(t.Context(), []*task.Task{queuedRequest(0)})
		must(t, err)
	}
	must(t, syscall.Kill(p.pid(), syscall.SIGCONT))
	for n := 1; ; n++ {
		answer := p.ask("hear")
		if strings.HasPrefix(answer, "lost true") {
			break
		}
		if n == count {
			t.Fatalf("got %q at last, want that something is lost, or less than all", answer)
		}
	}
}

// A lock that another process holds for long fails what is asked, and nothing of it is done.
func TestAQueueThatIsLocked(t *testing.T) {
	q := openQueue(t)
	worker, err := q.Register(t.Context(), state.Worker{Name: "test"})
	must(t, err)
	added, err := q.Add(t.Context(), []*task.Task{queuedRequest(0)})
	must(t, err)
	flying, err := q.Claim(t.Context(), worker, []int64{added[0].Task.Number}, time.Now(), nil)
	must(t, err)
	flying[0].BeginAttempt()
	p := startPuppet(t)
	p.ask("queue", q.dir)
	p.ask("lock")
	before := dump(t, q.Journal)
	if _, err := q.Add(t.Context(), []*task.Task{queuedRequest(0), queuedRequest(1)}); !errors.Is(err, state.ErrLocked) {
		t.Errorf("add: got %v, want %v", err, state.ErrLocked)
	}
	if err := settleSucceeded(q, flying[0]); !errors.Is(err, state.ErrLocked) {
		t.Errorf("settle: got %v, want %v", err, state.ErrLocked)
	}
	p.ask("unlock")
	if after := dump(t, q.Journal); after != before {
		t.Errorf("got\n%s\nwant no change of\n%s", after, before)
	}
	must(t, settleSucceeded(q, flying[0]))
	must(t, settleSucceeded(q, flying[0]))
}

// Whenever a process is killed: what it has acknowledged is there, and nothing is there by half. A build with -tags
// crashpoints kills it at the steps of a transaction, any other one wherever it is.
func TestAKilledQueueLosesNothing(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]string{} // what was last said of a task
	kills := 30
	if testing.Short() {
		kills = 3
	}
	for range kills {
		steps := []string{"transaction begun", "transaction written", "transaction committed"}
		t.Setenv("RETRY_CRASH_AT", fmt.Sprintf("%s:%d", steps[rand.IntN(len(steps))], 20+rand.IntN(100)))
		p := startPuppet(t)
		p.ask("queue", dir)
		p.ask("register")
		p.tell("carry")
		for n := 1 + rand.IntN(100); n > 0 && p.answers.Scan(); n-- {
			verb, id, _ := strings.Cut(p.answers.Text(), " ")
			acknowledged[id] = verb
		}
		for _, line := range p.kill() {
			if verb, id, whole := strings.Cut(line, " "); whole && len(id) == 36 {
				acknowledged[id] = verb
			}
		}
	}
	q := queueIn(t, dir)
	checkCarried(t, q, acknowledged)
	worker, err := q.Register(t.Context(), state.Worker{Name: "rescuer"})
	must(t, err)
	rescueAll(t, q, worker)
	if left, err := q.Dead(t.Context(), time.Now(), time.Minute); err != nil || len(left) != 0 {
		t.Errorf("got dead workers %+v, %v; want none", left, err)
	}
	counts, err := q.Counts(t.Context(), time.Now())
	if err != nil || counts.ByStatus[task.InFlight] != 0 {
		t.Errorf("got %+v, %v; want nothing in flight without a worker", counts, err)
	}
	integrity(t, q.Journal)
}

func checkCarried(t *testing.T, q *Queue, acknowledged map[string]string) {
	t.Helper()
	batches, f := map[int64]int{}, state.PageFilter{Limit: 200}
	for {
		page, err := q.Page(t.Context(), f)
		must(t, err)
		for _, tk := range page.Tasks {
			said := acknowledged[tk.ID]
			delete(acknowledged, tk.ID)
			batches[(tk.Number-1)/3]++
			whole := tk.Status == task.Pending && tk.AttemptCount == 0 && tk.Nonce == 0 ||
				tk.Status == task.InFlight && tk.AttemptCount == 1 && tk.Nonce != 0 && tk.Last.Decision.Verdict == "" ||
				tk.Status == task.Succeeded && tk.AttemptCount == 1 && tk.Nonce == 0 && tk.Last.Decision.Verdict == task.VerdictSucceeded
			late := said == "settled" && tk.Status != task.Succeeded || said == "claimed" && tk.AttemptCount == 0
			if !whole || late || tk.Damage != nil {
				t.Errorf("got %s, %q, damage %v; acknowledged %q", showTask(tk), tk.Last.Decision.Verdict, tk.Damage, said)
			}
		}
		if f.Cursor = page.Next; f.Cursor == 0 {
			break
		}
	}
	for batch, n := range batches {
		if n != 3 {
			t.Errorf("got %d tasks of batch %d, want 3", n, batch)
		}
	}
	for id, said := range acknowledged {
		t.Errorf("got no task %s, which was %s", id, said)
	}
}

// rescueAll takes over and settles what dead workers have left.
func rescueAll(t *testing.T, q *Queue, worker int64) {
	t.Helper()
	dead, err := q.Dead(t.Context(), time.Now(), time.Minute)
	must(t, err)
	for _, d := range dead {
		taken, err := q.TakeOver(t.Context(), worker, d, 100, time.Now())
		must(t, err)
		for _, tk := range taken {
			a := tk.Last
			a.Outcome, a.Decision = tk.Crashed(), interrupted
			tk.ApplyDecision(a, time.Now())
			must(t, q.Settle(t.Context(), tk, a, nil))
		}
	}
	_, err = q.Dead(t.Context(), time.Now(), time.Minute) // removes the rows of those that have nothing any more
	must(t, err)
}
