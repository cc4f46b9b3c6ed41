//go:build unix

package cmdexec

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

const shell = "/bin/sh"

// process is a started command. Between the end of exited and reap its number cannot go to another process.
type process struct {
	pid         int
	task        string        // the id of its task, which it has in its environment
	shared      bool          // in retry's own process group
	typed       func() bool   // Executor.OnTerminal
	hadTerminal bool          // when it was started
	exited      chan struct{} // closed when the process has ended, before it is reaped
}

// launch starts a process. One locked thread starts it and waits for it, since Linux sends the death signal of a parent when
// the thread that forked ends.
func (e *Executor) launch(path string, argv []string, env []string, f files, tk string) (*process, error) {
	p := &process{
		task: tk, shared: e.SharedGroup, typed: e.OnTerminal, hadTerminal: e.SharedGroup && hasTerminal(),
		exited: make(chan struct{}),
	}
	attributes := &syscall.ProcAttr{
		Dir: e.Dir, Env: env, Files: []uintptr{f.stdin.Fd(), f.stdout.Fd(), f.stderr.Fd()}, Sys: sysProcAttr(e.SharedGroup),
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		release := nothing
		if p.shared {
			release = holdStops()
		}
		err := underInheritedMask(func() error { return p.start(path, argv, attributes) })
		if err != nil {
			release()
			started <- err
			return
		}
		started <- nil
		p.await()
		release()
		close(p.exited)
	}()
	err := <-started
	runtime.KeepAlive(f)
	return p, err
}

// start does without package os, whose first process of all is one to try pidfds with. What has not been reaped keeps its number.
func (p *process) start(path string, argv []string, attributes *syscall.ProcAttr) (err error) {
	if p.pid, _, err = syscall.StartProcess(path, argv, attributes); err != nil {
		return &fs.PathError{Op: "fork/exec", Path: path, Err: err}
	}
	return nil
}

// await returns when the process has ended, and leaves it to be reaped.
func (p *process) await() {
	if p.shared {
		awaitEndOrStops(p.pid, p.onTerminal)
	} else {
		awaitExit(p.pid)
	}
}

// reap collects the ended process, and says how it ended.
func (p *process) reap() task.Outcome {
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(p.pid, &status, 0, nil); err {
		case nil:
			return outcomeOf(status)
		case syscall.EINTR:
		default: // somebody else has reaped it
			return task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: "wait for the command: " + err.Error()}
		}
	}
}

// signal sends to the process's group, or to the process alone where the group is ours too. That it may have ended meanwhile
// is no error.
func (p *process) signal(sig os.Signal) {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	target := -p.pid
	if p.shared {
		target = p.pid
	}
	_ = syscall.Kill(target, n)
}

// ask asks the process, or its group, to end. A stopped process takes the signal only after a CONT.
func (p *process) ask(sig os.Signal) {
	p.signal(sig)
	p.signal(syscall.SIGCONT)
}

// terminate asks everything that the process started to end.
func (p *process) terminate() {
	p.everywhere(syscall.SIGTERM)
	p.everywhere(syscall.SIGCONT)
}

// kill kills everything that the process started.
func (p *process) kill() {
	p.everywhere(syscall.SIGKILL)
}

// everywhere sends to the whole group, or to our part of a group that is shared. What a nested retry started is that one's to
// ask, but to be killed with it.
func (p *process) everywhere(sig syscall.Signal) {
	p.signal(sig)
	if !p.shared && sig != syscall.SIGKILL {
		return
	}
	for _, m := range p.members() {
		if m.pid != p.pid && (sig == syscall.SIGKILL || m.group == syscall.Getpgrp()) {
			_ = syscall.Kill(m.pid, sig)
		}
	}
}

// getsFromTerminal reports whether the terminal sends this signal to the process too, as it does for a whole foreground group.
func (p *process) getsFromTerminal(sig os.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		return p.shared && p.onTerminal()
	case syscall.SIGHUP:
		return p.shared && p.hungUp()
	}
	return false
}

// hungUp reports whether the terminal that the process was started on is gone. Then the shell and the system hang up on all of
// its groups; only the leader of a session hears of it alone.
func (p *process) hungUp() bool {
	if p.typed == nil || !p.hadTerminal {
		return false
	}
	sid, err := unix.Getsid(0)
	return err == nil && sid != os.Getpid() && !hasTerminal()
}

func (p *process) onTerminal() bool {
	return p.typed != nil && p.typed()
}

// groupAlive reports whether something that the ended process started still runs in its group. kill(2) cannot tell: it counts
// zombies.
func (p *process) groupAlive() bool {
	return len(p.members()) > 0
}

// outcomeOf reads how a process ended.
func outcomeOf(status syscall.WaitStatus) task.Outcome {
	if status.Signaled() {
		return task.Outcome{Exit: task.ExitSignalBase + int(status.Signal()), Signal: signalName(status.Signal())}
	}
	return task.Outcome{Exit: status.ExitStatus()}
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIG" + strconv.Itoa(int(sig)) // a real-time signal
}

// hookShell returns the shell that runs hooks.
func hookShell() (string, error) { return shell, nil }

func needsShell(err error) bool {
	return errors.Is(err, syscall.ENOEXEC)
}

// notExecutable reports errors of execve that say the file is there but cannot be run, or not with such arguments.
func notExecutable(err error) bool {
	return errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ETXTBSY) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOEXEC)
}
