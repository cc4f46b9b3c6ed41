package cmdexec

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/task"
)

// supervisor stands between a running process and those who want something from it: signals, and the end of its time.
type supervisor struct {
	process    *process
	killAfter  time.Duration
	insistence time.Duration
	stop       os.Signal // the first signal that asked to stop
	stopped    time.Time // when it came
	timedOut   bool
	kill       <-chan time.Time // fires when TERM has had its time
}

// run returns when the process has ended and, after a timeout, when the rest of its group has too.
func (s *supervisor) run(ctx context.Context, signals <-chan os.Signal) {
	expired := ctx.Done()
	for {
		select {
		case <-s.process.exited:
			if s.timedOut {
				s.sweep(signals)
			}
			return
		case sig := <-signals:
			s.forward(sig)
		case <-expired:
			expired = nil
			s.timedOut = true
			s.process.terminate()
			s.kill = time.After(s.killAfter)
		case <-s.kill:
			s.process.kill()
		}
	}
}

// forward passes a signal on. A second one that asks to stop kills, unless it comes together with the first, or is what the
// terminal sends to both of us: an interpreter's prompt gets many of those and goes on.
func (s *supervisor) forward(sig os.Signal) {
	switch {
	case s.process.getsFromTerminal(sig):
	case !task.Stops(sig):
		s.process.signal(sig)
	case s.stop == nil:
		s.process.ask(sig)
	case time.Since(s.stopped) >= s.insistence || sig == os.Interrupt: // two INTs are typed, not sent by a manager
		s.process.kill()
	case sig != s.stop:
		s.process.signal(sig)
	}
	s.noteStop(sig)
}

func (s *supervisor) noteStop(sig os.Signal) {
	if s.stop == nil && task.Stops(sig) {
		s.stop, s.stopped = sig, time.Now()
	}
}

// sweepInterval is how often a group is looked at that outlives its leader.
const sweepInterval = 10 * time.Millisecond

// sweep gives what the leader left behind the rest of its time, then kills it, and returns when it is gone. The leader is not
// reaped yet, so that no other process can have its number.
func (s *supervisor) sweep(signals <-chan os.Signal) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for s.process.groupAlive() {
		select {
		case <-tick.C:
		case sig := <-signals:
			s.forward(sig)
		case <-s.kill:
			s.process.kill()
		}
	}
}

// terminalGrace is how long retry's own copy of a signal may take that the terminal sent to the process too.
const terminalGrace = time.Second

// hearTerminal listens for the signal of the terminal that ended the process, where one did: it often comes a moment later,
// and tells that the user stopped the command.
func (s *supervisor) hearTerminal(o task.Outcome, signals <-chan os.Signal) {
	if !s.process.getsFromTerminal(syscall.Signal(o.Exit - task.ExitSignalBase)) {
		return // neither died of INT or QUIT nor caught it and exited as shells do then
	}
	late := time.After(terminalGrace)
	for s.stop == nil {
		select {
		case sig := <-signals:
			s.noteStop(sig)
		case <-late:
			return
		}
	}
}
