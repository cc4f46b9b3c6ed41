package cmdexec

import (
	"context"
	"os"
	"time"

	"github.com/10f93571/retry/runner"
)

// supervisor stands between a running process and those who want something from it: signals, and the end of its time.
type supervisor struct {
	process   *process
	killAfter time.Duration
	stop      os.Signal // the first signal that asked to stop
	timedOut  bool
	kill      <-chan time.Time // fires when TERM has had its time
}

// run returns when the process has ended and, after a timeout, when the rest of its group has too.
func (s *supervisor) run(ctx context.Context, signals <-chan os.Signal) {
	expired := ctx.Done()
	for {
		select {
		case <-s.process.exited:
			if s.timedOut {
				s.sweep()
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

// forward passes a signal on. A second one that asks to stop kills, except for what the terminal sends to both of us: an
// interpreter's prompt gets many of those and goes on.
func (s *supervisor) forward(sig os.Signal) {
	if s.process.getsFromTerminal(sig) {
		s.noteStop(sig)
		return
	}
	if s.stop != nil && runner.Stops(sig) {
		s.process.kill()
		return
	}
	s.noteStop(sig)
	s.process.signal(sig)
}

func (s *supervisor) noteStop(sig os.Signal) {
	if s.stop == nil && runner.Stops(sig) {
		s.stop = sig
	}
}

// sweepInterval is how often a group is looked at that outlives its leader.
const sweepInterval = 10 * time.Millisecond

// sweep gives what the leader left behind the rest of its time, then kills it. The leader is not reaped yet, so that no
// other process can have its number.
func (s *supervisor) sweep() {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for s.process.groupAlive() {
		select {
		case <-tick.C:
		case <-s.kill:
			s.process.kill()
			return
		}
	}
}
