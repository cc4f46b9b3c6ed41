//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

// puppetVariable turns the test binary into a puppet: a process that does on the journal what its test tells it, line by
// line, and answers each order with one line.
const puppetVariable = "RETRY_STATE_PUPPET"

func TestMain(m *testing.M) {
	if os.Getenv(puppetVariable) != "" {
		os.Exit(perform(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// perform ends with its input, so that no puppet outlives its test.
func perform(orders io.Reader, answers io.Writer) int {
	a := &actor{orders: orders, answers: answers}
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		verb, arg, _ := strings.Cut(lines.Text(), " ")
		answer, err := a.act(verb, arg)
		if err != nil {
			answer = "error " + strconv.Quote(err.Error())
		}
		_, _ = fmt.Fprintln(answers, answer)
	}
	return 0
}

// actor is the state of a puppet.
type actor struct {
	journal *Journal
	orders  io.Reader
	answers io.Writer
}

func (a *actor) act(verb, arg string) (answer string, err error) {
	ctx := context.Background()
	number, _ := strconv.ParseInt(arg, 10, 64) // of the orders that have one
	switch verb {
	case "umask":
		syscall.Umask(0)
	case "prepare":
		if err = lock.CreateDir(arg); err == nil {
			err = lock.CreateFiles(arg, DatabaseName, lock.OwnersFile)
		}
	case "upgrade":
		migrations = append(migrations, nextStep)
	case "open":
		a.journal, err = Open(ctx, arg)
	case "close":
		err = a.journal.Close()
	case "create":
		return a.create(arg)
	case "name":
		owned, pid, err := a.journal.OwnName(arg)
		return fmt.Sprint(owned, " ", pid), err
	case "visit":
		return a.visit(arg)
	case "adopt":
		return a.adopt(number)
	case "release":
		err = a.journal.Release(number)
	case "owner":
		pid, err := a.journal.Owner(number)
		return strconv.Itoa(pid), err
	case "part":
		_, err = a.part(number)
	case "keep":
		err = a.keep(number)
	case "write":
		return "", a.write()
	default:
		err = fmt.Errorf("unknown order %q", verb)
	}
	return "done", err
}

func (a *actor) create(name string) (string, error) {
	tk := newTask()
	tk.Name = name
	err := claimed(a.journal, tk, time.Now())
	return fmt.Sprint(tk.Number, " ", tk.ID), err
}

// visit is a whole process's use of the journal.
func (a *actor) visit(dir string) (answer string, err error) {
	if a.journal, err = Open(context.Background(), dir); err != nil {
		return "", err
	}
	answer, err = a.create("")
	return answer, errors.Join(err, a.journal.Close())
}

func (a *actor) adopt(number int64) (string, error) {
	tk, err := a.journal.Adopt(context.Background(), number)
	switch {
	case errors.Is(err, state.ErrOwned):
		return "owned", nil
	case errors.Is(err, state.ErrFinished):
		return "finished", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprint("adopted ", tk.Status, " ", tk.AttemptCount), nil
}

func (a *actor) task(number int64) (*task.Task, error) {
	return a.journal.newest(context.Background(), "WHERE t.number = ?", number)
}

// part keeps the beginning of a task's stdin.
func (a *actor) part(number int64) (*os.File, error) {
	tk, err := a.task(number)
	if err != nil {
		return nil, err
	}
	file, err := a.journal.KeepInput(tk)
	if err == nil {
		_, err = file.WriteString("part")
	}
	return file, err
}

// keep keeps the whole.
func (a *actor) keep(number int64) error {
	file, err := a.part(number)
	if err != nil {
		return err
	}
	tk, err := a.task(number)
	if err != nil {
		return err
	}
	return a.journal.CompleteInput(tk, file)
}

// write takes tasks through their attempts until it is killed. Each line acknowledges a commit: the task and how many of
// its writes there were.
func (a *actor) write() error {
	go func() {
		_, _ = io.Copy(io.Discard, a.orders)
		os.Exit(0)
	}()
	for {
		tk, writes := newTask(), 0
		for _, d := range []task.Decision{retryIn(time.Second), retryIn(time.Second), succeeded} {
			steps := []func() error{
				func() error { return claimed(a.journal, tk, time.Now()) },
				func() error { return recorded(a.journal, tk, exit(1), d, time.Now()) },
			}
			for _, step := range steps {
				if err := step(); err != nil {
					return err
				}
				writes++
				_, _ = fmt.Fprintln(a.answers, tk.ID, writes)
			}
		}
	}
}

// puppet is a running puppet, seen from its test.
type puppet struct {
	t       *testing.T
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
	killed  bool
}

func startPuppet(t *testing.T) *puppet {
	t.Helper()
	testkit.Slow(t, "it starts many processes")
	p := &puppet{t: t, cmd: exec.Command(os.Args[0])}
	// The race detector would have each puppet sleep for a second before it exits.
	p.cmd.Env = append(os.Environ(), puppetVariable+"=1", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	p.cmd.Stderr = os.Stderr
	orders, err := p.cmd.StdinPipe()
	must(t, err)
	answers, err := p.cmd.StdoutPipe()
	must(t, err)
	p.orders, p.answers = orders, bufio.NewScanner(answers)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.killed {
			return
		}
		_ = p.orders.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("the puppet ended with %v", err) // it panicked, or the race detector found something
		}
	})
	return p
}

// startOn starts a puppet that has the journal open.
func startOn(t *testing.T, dir string) *puppet {
	t.Helper()
	p := startPuppet(t)
	p.ask("open", dir)
	return p
}

func (p *puppet) pid() int { return p.cmd.Process.Pid }

// tell gives an order and does not wait for the answer.
func (p *puppet) tell(order string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.orders, append([]any{order}, args...)...)
	must(p.t, err)
}

// hear returns the next line of the answer.
func (p *puppet) hear() string {
	p.t.Helper()
	if !p.answers.Scan() {
		p.t.Fatalf("the puppet is gone: %v", p.answers.Err())
	}
	return p.answers.Text()
}

// ask fails the test where the puppet answers with an error.
func (p *puppet) ask(order string, args ...any) string {
	p.t.Helper()
	p.tell(order, args...)
	return p.answer(order)
}

// answer fails the test where the answer to an order is an error.
func (p *puppet) answer(order string) string {
	p.t.Helper()
	answer := p.hear()
	if strings.HasPrefix(answer, "error") {
		p.t.Fatalf("%s: %s", order, answer)
	}
	return answer
}

// create returns the number of a task that the puppet has made and owns.
func (p *puppet) create() (number int64, id string) {
	p.t.Helper()
	answer := p.ask("create")
	if _, err := fmt.Sscan(answer, &number, &id); err != nil {
		p.t.Fatalf("create: %s", answer)
	}
	return number, id
}

// kill ends the puppet as kill -9 does, and returns what it had still said.
func (p *puppet) kill() (rest []string) {
	p.t.Helper()
	p.killed = true
	must(p.t, p.cmd.Process.Kill())
	for p.answers.Scan() {
		rest = append(rest, p.answers.Text())
	}
	_ = p.cmd.Wait() // says that it was killed; closes both pipes
	return rest
}

// Its report may be still to come.
func TestATaskWhoseOwnerLivesIsNotPruned(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	owner := startOn(t, dir)
	owned, _ := owner.create()
	must(t, j.Cancel(t.Context(), owned, epoch.AddDate(0, 0, -1)))
	ended(t, j, succeeded, 1, epoch, nil)
	if n, _ := prune(t, j, state.Retention{Rows: leastRows}); n != 1 || !slices.Equal(left(t, j), []int64{owned}) {
		t.Errorf("%d went, left are %v", n, left(t, j))
	}
	owner.kill()
	if n, _ := prune(t, j, state.Retention{}); n != 1 {
		t.Errorf("%d went", n)
	}
}
