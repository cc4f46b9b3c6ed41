package cmdexec

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// supervise waits for the end of a started process, and meanwhile passes signals on and stops it when ctx ends.
func (e *Executor) supervise(ctx context.Context, t *task.Task, p *proc.Process, c runner.Call) task.Outcome {
	s := &supervisor{
		process: p, killAfter: t.Policy.KillAfter, secondStopKills: e.SecondStopKills, signals: c.Signals,
	}
	restoreTerminal := p.SaveTerminal()
	cancel := announce(p.Token, c.Started)
	s.run(ctx)
	cancel()
	o := p.Reap()
	if o.Signal != "" {
		restoreTerminal()
	}
	s.awaitTerminalSignal(o)
	o.Stop = s.stop
	if s.timedOut {
		o.Error, o.Message = task.ErrorTimeout, context.Cause(ctx).Error()
	}
	return o
}

// announceAfter is how long an attempt runs before its token is stored. Most attempts have ended by then and need no
// write; a resume finds the processes of such an attempt by their environment.
const announceAfter = 10 * time.Millisecond

// announce calls started with the token after a delay. The caller must call cancel before the process is reaped; it
// waits for a call that has begun.
func announce(token func() string, started func(string)) (cancel func()) {
	if started == nil {
		return func() {}
	}
	done := make(chan struct{})
	timer := time.AfterFunc(announceAfter, func() {
		defer close(done)
		if text := token(); text != "" {
			started(text)
		}
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// supervisor passes signals and the timeout to a running process.
type supervisor struct {
	process         *proc.Process
	killAfter       time.Duration
	secondStopKills time.Duration
	signals         <-chan os.Signal

	stop     os.Signal // the first signal that asked to stop
	stopTime time.Time // when it came
	timedOut bool
	kill     <-chan time.Time // fires at the end of killAfter
}

// run returns when the process has ended. After a timeout it also waits for the rest of the group.
func (s *supervisor) run(ctx context.Context) {
	expired := ctx.Done()
	for {
		select {
		case <-s.process.Ended:
			if s.timedOut {
				s.awaitGroup()
			}
			return
		case sig := <-s.signals:
			s.forward(sig)
		case <-expired:
			expired = nil
			s.timedOut = true
			s.process.Terminate()
			s.kill = time.After(s.killAfter)
		case <-s.kill:
			s.process.Kill()
		}
	}
}

// forward passes a signal on. A second signal that asks to stop kills, unless it comes together with the first, or the
// terminal has sent it to the process too: the prompt of an interpreter gets many of those and goes on.
func (s *supervisor) forward(sig os.Signal) {
	switch {
	case s.process.GetsFromTerminal(sig):
	case !task.Stops(sig):
		s.process.Signal(sig)
	case s.stop == nil:
		s.process.Stop(sig)
	case time.Since(s.stopTime) >= s.secondStopKills || sig == os.Interrupt: // only a person sends INT twice
		s.process.Kill()
	case sig != s.stop:
		s.process.Signal(sig)
	}
	s.noteStop(sig)
}

func (s *supervisor) noteStop(sig os.Signal) {
	if s.stop == nil && task.Stops(sig) {
		s.stop, s.stopTime = sig, time.Now()
	}
}

// groupInterval is the time between two checks whether the rest of a group has ended.
const groupInterval = 10 * time.Millisecond

// awaitGroup waits until the processes that the leader left behind have ended too, and kills them at the end of
// killAfter. The leader is not reaped yet, so that its group keeps its number.
func (s *supervisor) awaitGroup() {
	tick := time.NewTicker(groupInterval)
	defer tick.Stop()
	for s.process.GroupAlive() {
		select {
		case <-tick.C:
		case sig := <-s.signals:
			s.forward(sig)
		case <-s.kill:
			s.process.Kill()
		}
	}
}

// terminalDelay is how much later than the process retry may get a signal that the terminal sends to both.
const terminalDelay = time.Second

// awaitTerminalSignal waits for retry's own copy of a terminal signal that has ended the process: it tells that the
// user stopped the command. The process has either died of INT or QUIT, or caught it and exited with the status that
// shells use then.
func (s *supervisor) awaitTerminalSignal(o task.Outcome) {
	if !s.process.GetsFromTerminal(syscall.Signal(o.Exit - task.ExitSignalBase)) {
		return
	}
	late := time.After(terminalDelay)
	for s.stop == nil {
		select {
		case sig := <-s.signals:
			s.noteStop(sig)
		case <-late:
			return
		}
	}
}
