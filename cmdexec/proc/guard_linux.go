package proc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

// Guard is a process that holds the write end of an attempt's stdin beside retry. Should retry die while the input
// streams, what reads it would take that for the end of the input. The guard keeps the end open until it has stopped
// all of the attempt, and then kills it.
type Guard struct {
	line *os.File // what the guard reads: tokens, then leave or kill, or the end if retry has died
	pid  int
	over sync.Once
}

// guardName is the first argument of a guard. It does not contain the name of retry: pkill -f must not find both.
const guardName = "stdin-guard"

const (
	leave = "leave"
	kill  = "kill"
)

// The descriptors of a guard: what it holds is in the order of Input.Held, and not at 2, where Go reports a panic.
const (
	lineFD  = 0
	firstFD = 1
	errorFD = 2
	feedFD  = 3
)

// A guard is this program again. It begins before main: each test program is one too.
func init() {
	if os.Args[0] == guardName && len(os.Args) == 4 {
		number, _ := strconv.Atoi(os.Args[2])
		owner, _ := strconv.Atoi(os.Args[3])
		guard(&task.Task{ID: os.Args[1]}, task.Attempt{Number: number}, owner)
		os.Exit(0)
	}
}

// StartGuard starts the guard of an attempt, with the descriptors to hold: the second is the write end. It returns nil
// where that fails: the command runs without.
func StartGuard(held []uintptr, t *task.Task, attempt int) *Guard {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer func() { _ = read.Close() }()
	children.Lock()
	defer children.Unlock()
	pid, _, err := syscall.StartProcess("/proc/self/exe",
		[]string{guardName, t.ID, strconv.Itoa(attempt), strconv.Itoa(os.Getpid())},
		&syscall.ProcAttr{
			Dir: "/", Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true},
			Files: append([]uintptr{lineFD: read.Fd(), firstFD: held[0], errorFD: read.Fd()}, held[1:]...),
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
			g.Note(kill)
			_ = g.line.Close()
			go (&Process{pid: g.pid}).Reap()
		})
	}
}

// guard is all that the process of a guard does.
func guard(t *task.Task, a task.Attempt, owner int) {
	signal.Ignore() // a system that stops a service sends TERM to each process
	died := true
	for lines := bufio.NewScanner(os.Stdin); died && lines.Scan(); {
		switch lines.Text() {
		case leave:
			_ = unix.Close(feedFD) // at once: a reader waits for it
			return
		case kill:
			died = false
		default:
			a.Process = lines.Text()
		}
	}
	// The end of retry may orphan groups, and the kernel sends HUP and CONT to those with a process that is stopped.
	for tries := 0; died && os.Getppid() == owner && tries < 1000; tries++ {
		_, _ = unix.Poll(nil, 1)
	}
	unread := func(within time.Duration) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: feedFD}}, int(within.Milliseconds()))
		return n != 0 && err == nil
	}
	killReaders(unread, func() error { return killAll(t, a, died) })
}

const (
	firstPause = 10 * time.Millisecond
	lastPause  = 10 * time.Second
)

// killReaders kills until nobody reads the pipe any more, or until that fails: then the lifeline kills the group. A
// reader that cannot be found, or belongs to another user, waits for more, and the guard with it: the pauses grow.
func killReaders(unread func(within time.Duration) bool, killAll func() error) {
	if unread(0) {
		return
	}
	for pause := firstPause; killAll() == nil && !unread(pause); {
		pause = min(2*pause, lastPause)
	}
}

// killAll kills what is left of an attempt and all that descends from it. A pipeline must not see the end of the output
// of a process that was killed, so it stops all before it kills the first: the youngest first, for a process that ends
// may let a group continue that has become an orphan by that. It spares the guard of a retry inside of the attempt:
// that kills what its own retry has left, which may be in another session, before the input of that ends.
func killAll(t *task.Task, a task.Attempt, died bool) error {
	var found []info
	for again, tries := true, 0; again && tries < 100; tries++ {
		left, err := survivors(t, a)
		if unsure := (*unsureError)(nil); err != nil && !errors.As(err, &unsure) { // what may be of others is spared
			return err
		}
		if !died {
			left = slices.DeleteFunc(left, func(p info) bool { return p.mayBeLater(t.ID, a.Number) })
		}
		again = false
		for _, p := range withoutLater(withDescendants(left, allProcesses()), t, a) {
			if p.isGuard() {
				continue
			}
			if !slices.ContainsFunc(found, func(other info) bool { return other.Pid == p.Pid }) {
				found = append(found, p) // what is stopped is killed also where the next pass does not find it
			}
			if !p.stopped {
				again = true
				_ = syscall.Kill(p.Pid, syscall.SIGSTOP)
			}
		}
		if again {
			_, _ = unix.Poll(nil, 1)
		}
	}
	slices.SortFunc(found, func(p, q info) int { return cmp.Or(cmp.Compare(q.Start, p.Start), cmp.Compare(q.Pid, p.Pid)) })
	for _, p := range found {
		_ = syscall.Kill(p.Pid, syscall.SIGKILL)
	}
	return nil
}

// isGuard reports whether a process guards the stdin of an attempt.
func (p info) isGuard() bool {
	line, _ := readFile("/proc/" + strconv.Itoa(p.Pid) + "/cmdline")
	return bytes.HasPrefix(line, []byte(guardName+"\x00"))
}

// mayBeLater reports whether a process may be none of an attempt, but of what a living retry has run since: another
// attempt, what a retry inside of that has left, or a hook. A reader that is spared by mistake waits for more input.
func (p info) mayBeLater(taskID string, attempt int) bool {
	return p.isOf(taskID, attempt+1) || p.isNestedIn(taskID, attempt+1) || p.isOfHook()
}

// withoutLater leaves out the processes of later attempts, which have guards of their own: they may run already.
func withoutLater(found []info, t *task.Task, a task.Attempt) []info {
	all := allProcesses()
	later := living(all, func(p info) bool { return p.isWithin(t.ID, a.Number+1) })
	later = withDescendants(later, all)
	return slices.DeleteFunc(found, func(p info) bool {
		return slices.ContainsFunc(later, func(other info) bool { return p.Pid == other.Pid })
	})
}
