//go:build unix

package proc

import (
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/10f93571/retry/task"
)

// Process is a started command. It stays a zombie until Reap is called, so that no other process gets its number.
type Process struct {
	Ended chan struct{} // closed when the process has ended

	pid         int
	begun       int64 // a moment before its start, by clock
	taskID      string
	attempt     int         // 0 for a hook
	shared      bool        // it is in our own process group
	onTerminal  func() bool // Command.OnTerminal, never nil
	hadTerminal bool        // we had a controlling terminal when it was started
}

// Start starts the process. One locked thread starts it and waits for it: on Linux the parent-death signal is sent when
// the thread that forked ends.
func (c *Command) Start() (*Process, error) {
	p := &Process{
		Ended: make(chan struct{}), taskID: c.TaskID, attempt: c.Attempt, shared: c.SharedGroup, onTerminal: c.OnTerminal,
		hadTerminal: c.SharedGroup && c.OnTerminal != nil && hasTerminal(),
	}
	if p.onTerminal == nil {
		p.onTerminal = func() bool { return false }
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		wait, release := waitForEnd, nothing
		if p.shared {
			release = catchStops()
			wait = func(pid int) { waitForEndOrStops(pid, p.onTerminal) }
		}
		p.begun = clock()
		if c.Starting != nil {
			c.Starting(p.earlyToken())
		}
		if err := withInheritedMask(func() error { return p.start(c) }); err != nil {
			release()
			started <- err
			return
		}
		if c.Starting != nil {
			c.Starting(p.earlyToken())
		}
		started <- nil
		wait(p.pid)
		release()
		close(p.Ended)
	}()
	return p, <-started
}

// start calls syscall.StartProcess, which saves 4 % of a start: os.StartProcess forks once more to probe for pidfd
// support. We need no pidfd, since nobody else reaps the process.
func (p *Process) start(c *Command) (err error) {
	children.Lock()
	defer children.Unlock()
	p.pid, _, err = syscall.StartProcess(c.Path, c.Argv, &syscall.ProcAttr{
		Dir: c.Dir, Env: c.Env, Sys: sysProcAttr(c),
		Files: []uintptr{c.Stdin.Fd(), c.Stdout.Fd(), c.Stderr.Fd()},
	})
	runtime.KeepAlive(c)
	if err != nil {
		return &fs.PathError{Op: "fork/exec", Path: c.Path, Err: err}
	}
	children.own = append(children.own, p.pid)
	if c.Started != nil {
		c.Started(p.Target())
	}
	return nil
}

// children are the processes that this one has started and not yet reaped.
var children struct {
	sync.Mutex
	own []int
}

// ReapAdopted reaps from now on the orphans that the system gives to this process, as it does to PID 1.
func ReapAdopted() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			reapAdopted()
		}
	}()
}

// reapAdopted stops at a child of our own, which Reap collects. Reap then calls it again.
func reapAdopted() {
	children.Lock()
	defer children.Unlock()
	for {
		pid := endedChild()
		if pid == 0 || slices.Contains(children.own, pid) {
			return
		}
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// Reap collects the ended process and returns how it ended.
func (p *Process) Reap() task.Outcome {
	outcome := p.reap()
	children.Lock()
	children.own = slices.DeleteFunc(children.own, func(pid int) bool { return pid == p.pid })
	children.Unlock()
	if os.Getpid() == 1 {
		reapAdopted()
	}
	return outcome
}

func (p *Process) reap() task.Outcome {
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(p.pid, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil: // somebody else has reaped it
			message := "wait for the command: " + err.Error()
			return task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: message}
		case status.Signaled():
			return task.Outcome{Exit: task.ExitSignalBase + int(status.Signal()), Signal: signalName(status.Signal())}
		default:
			return task.Outcome{Exit: status.ExitStatus()}
		}
	}
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIG" + strconv.Itoa(int(sig)) // a real-time signal
}

// Target is what kill(2) takes for the process group, or for the process alone if it shares our group.
func (p *Process) Target() int {
	if p.shared {
		return p.pid
	}
	return -p.pid
}

// Signal sends a signal to Target. A process that has ended is no error.
func (p *Process) Signal(sig os.Signal) {
	number, _ := sig.(syscall.Signal) // every signal is one; 0 would have no effect
	_ = syscall.Kill(p.Target(), number)
}

// Stop passes on a signal that asks to end. A stopped process handles it only after a CONT.
func (p *Process) Stop(sig os.Signal) {
	p.Signal(sig)
	p.Signal(syscall.SIGCONT)
}

// Terminate sends a signal to everything that the process has started: TERM, unless it is named, as SIGINT or SIG34.
func (p *Process) Terminate(name string) {
	first := syscall.SIGTERM
	if number, err := strconv.Atoi(strings.TrimPrefix(name, "SIG")); err == nil {
		first = syscall.Signal(number)
	} else if named := unix.SignalNum(name); named != 0 {
		first = named
	}
	p.signalAll(first)
	p.signalAll(syscall.SIGCONT)
}

// Kill kills everything that the process has started.
func (p *Process) Kill() {
	p.signalAll(syscall.SIGKILL)
}

// signalAll sends a signal to the whole group, or to our part of a shared group, and to the leaders of the other groups
// of the attempt, such as timeout(1), which pass it on. It leaves the processes of a nested retry to that one, except
// for a KILL.
func (p *Process) signalAll(sig syscall.Signal) {
	p.Signal(sig)
	for _, m := range p.members() {
		if m.Pid != p.pid && (sig == syscall.SIGKILL || m.Group == syscall.Getpgrp() || p.leads(m)) {
			_ = syscall.Kill(m.Pid, sig)
		}
	}
}

// leads reports whether a process leads a group that the attempt has made for itself, as job control does.
func (p *Process) leads(m info) bool { return m.Pid == m.Group && p.hasStarted(m) }

func (p *Process) hasStarted(m info) bool { return p.attempt > 0 && m.isOf(p.taskID, p.attempt) }

// GroupAlive reports whether something that the process has started still runs. kill(2) cannot tell, since it finds
// zombies too.
func (p *Process) GroupAlive() bool {
	return len(p.members()) > 0
}

// LeftGroup reports whether a process that has been reaped, and led a group of its own, has left processes in it. It
// looks for those only where kill(2) finds some, perhaps zombies.
func (p *Process) LeftGroup() bool {
	return !p.shared && syscall.Kill(-p.pid, 0) == nil && p.GroupAlive()
}

// members returns the processes of a running attempt: in a group of its own all of them, in a shared group those that
// have the task in their environment. What it runs in other groups belongs to it too, and so does what a nested retry
// runs there, but not a daemon, which is in another session.
func (p *Process) members() []info {
	group := p.pid
	if p.shared {
		group = syscall.Getpgrp()
	}
	return processes(func(q info) bool {
		if q.Group != group {
			return q.Session == session() && (q.isNestedIn(p.taskID, 0) || p.hasStarted(q))
		}
		return !p.shared || q.Pid == p.pid || q.isOf(p.taskID, 0)
	})
}

// GetsFromTerminal reports whether the terminal sends this signal to the process too, as it does to a whole foreground
// group.
func (p *Process) GetsFromTerminal(sig os.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		return p.shared && p.onTerminal()
	case syscall.SIGHUP:
		return p.shared && p.hungUp()
	}
	return false
}

// hungUp reports whether the terminal that the process was started on is gone. Then the shell and the system send HUP
// to all of its groups; only the leader of a session gets one of its own.
func (p *Process) hungUp() bool {
	if !p.hadTerminal {
		return false
	}
	return session() != os.Getpid() && !hasTerminal()
}

// Interactive reports whether a stream is a terminal and our group is in its foreground. Only then do Ctrl-C, Ctrl-Z
// and prompts work for a child in our group.
func Interactive(stream *os.File) bool {
	group, err := unix.IoctlGetInt(int(stream.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// OnTerminal reports whether a stream is our controlling terminal, whichever group is in its foreground.
func OnTerminal(stream *os.File) bool {
	_, err := unix.IoctlGetInt(int(stream.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// InForeground reports whether our group is in the foreground of our controlling terminal.
func InForeground() bool {
	return isForeground(syscall.Getpgrp())
}

// Terminal reports whether we have a controlling terminal, and whether our group is in its foreground.
func Terminal() (has, foreground bool) {
	group := 0
	has = withTerminal(func(terminal *os.File) { group, _ = unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP) })
	return has, has && group == syscall.Getpgrp()
}

// isForeground reports whether a process group is in the foreground of our controlling terminal.
func isForeground(group int) bool {
	foreground := 0
	withTerminal(func(terminal *os.File) { foreground, _ = unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP) })
	return foreground == group
}

// hasTerminal reports whether we have a controlling terminal.
func hasTerminal() bool {
	return withTerminal(func(*os.File) {})
}

// withTerminal calls do with our controlling terminal. It returns false if there is none.
func withTerminal(do func(*os.File)) bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	do(terminal)
	return terminal.Close() == nil
}

// SaveTerminal reads the settings of the terminal before the process uses it. The function that it returns sets them
// again, as a shell does after a command that died of a signal and could not tidy up.
func (p *Process) SaveTerminal() (restore func()) {
	if !p.shared || !p.onTerminal() {
		return nothing
	}
	var state *term.State
	withTerminal(func(terminal *os.File) { state, _ = term.GetState(int(terminal.Fd())) })
	if state == nil {
		return nothing
	}
	return func() {
		if p.onTerminal() {
			withTerminal(func(terminal *os.File) { _ = term.Restore(int(terminal.Fd()), state) })
		}
	}
}

// outlived returns the signals that Go's runtime ignores where nobody asks for them, and those that are only passed on.
func outlived() []syscall.Signal {
	signals := []syscall.Signal{
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGXCPU,
		syscall.SIGIO, syscall.SIGCONT,
	}
	return append(signals, outlivedElse()...)
}

// isContinue reports whether a signal ends nothing, and says that a job stood still: what had a signal before may still
// have to end by that.
func isContinue(sig os.Signal) bool { return sig == syscall.SIGCONT }
