package proc

import (
	"bufio"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

// Guard is a process that holds the write end of an attempt's stdin beside retry. Should retry die while the input
// streams, what reads it outside the command's group would take that for the end of the input. The guard keeps the end
// open until it has killed what is left of the attempt.
type Guard struct {
	line *os.File // what the guard reads: tokens, then leave, or the end if retry has died
	pid  int
	over sync.Once
}

// guardName is the first argument of a guard. It does not contain the name of retry: pkill -f must not find both.
const guardName = "stdin-guard"

const leave = "leave"

// A guard is this program again. It begins before main: each test program is one too.
func init() {
	if os.Args[0] == guardName && len(os.Args) == 3 {
		number, _ := strconv.Atoi(os.Args[2])
		guard(&task.Task{ID: os.Args[1]}, task.Attempt{Number: number})
		os.Exit(0)
	}
}

// StartGuard starts the guard of an attempt. It returns nil where that fails: the command runs without.
func StartGuard(feed *os.File, t *task.Task, attempt int) *Guard {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer func() { _ = read.Close() }()
	children.Lock()
	defer children.Unlock()
	pid, _, err := syscall.StartProcess("/proc/self/exe", []string{guardName, t.ID, strconv.Itoa(attempt)},
		&syscall.ProcAttr{
			Dir: "/", Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true},
			Files: []uintptr{read.Fd(), feed.Fd(), read.Fd()},
		})
	if err != nil {
		_ = write.Close()
		return nil
	}
	children.own = append(children.own, pid)
	return &Guard{line: write, pid: pid}
}

// Note tells the guard how to find the processes of the attempt.
func (g *Guard) Note(token string) {
	if g != nil {
		_, _ = g.line.WriteString(token + "\n")
	}
}

// Dismiss lets the guard go: who reads the pipe now sees the end of the input.
func (g *Guard) Dismiss() {
	g.Note(leave)
	g.Close()
}

// Close ends the guard. Unless it was dismissed, it first kills what still reads the pipe, with all of the attempt.
func (g *Guard) Close() {
	if g != nil {
		g.over.Do(func() {
			_ = g.line.Close()
			go (&Process{pid: g.pid}).Reap()
		})
	}
}

// guard is all that the process of a guard does.
func guard(t *task.Task, a task.Attempt) {
	signal.Ignore() // a system that stops a service sends TERM to each process
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == leave {
			_ = unix.Close(1) // at once: a reader waits for it
			return
		}
		a.Process = lines.Text()
	}
	stopped := map[int]bool{}
	for {
		if n, err := unix.Poll([]unix.PollFd{{Fd: 1}}, 0); n != 0 && err == nil {
			return // nobody reads the pipe any more
		}
		killAll(t, a, stopped)
		_, _ = unix.Poll(nil, 10)
	}
}

// killAll stops all processes before it kills the first: a pipeline of theirs must not see the end of that one's output.
func killAll(t *task.Task, a task.Attempt, stopped map[int]bool) {
	for again := true; again; {
		again = false
		found, _ := survivors(t, a)
		for _, p := range found {
			again = again || !stopped[p.Pid]
			stopped[p.Pid] = true
			_ = syscall.Kill(p.Pid, syscall.SIGSTOP)
		}
		if !again {
			for _, p := range found {
				_ = syscall.Kill(p.Pid, syscall.SIGKILL)
			}
		}
	}
}
