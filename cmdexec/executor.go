// Package cmdexec executes the attempts of a command. It starts the process so that it can hardly tell that retry is
// there, passes signals on, and on a timeout stops the whole process group.
package cmdexec

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Executor runs the command of one task.
type Executor struct {
	Stdin           stdio.Stdin
	Output          stdio.Output
	Env             []string      // the environment of retry itself
	Dir             string        // where the command runs; empty for retry's own directory
	OnTerminal      func() bool   // whether the terminal now sends its signals to our process group; nil means never
	Terminal        bool          // retry has a controlling terminal
	SharedGroup     bool          // the process stays in retry's process group, as it must on a terminal
	SecondStopKills time.Duration // a second stop signal kills if the first is at least this old

	// TerminalDelay is how much later than a key on the terminal retry may get its signal. A process that followed
	// another one at once, and is younger, may have been started after the key that ended the other: it gets the signal,
	// perhaps for a second time.
	TerminalDelay time.Duration

	ended      time.Time // the last process
	name, path string    // of the last program, and where it was found
	inherited  []string  // the part of the environment that all attempts share
}

// Execute runs one attempt to its end. When ctx ends first, the process group gets TERM, and KILL after the policy's
// kill-after.
func (e *Executor) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	start := time.Now()
	o := e.execute(ctx, t, c)
	o.Duration = time.Since(start)
	return o
}

func (e *Executor) execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	in, err := e.Stdin.Open()
	if errors.Is(err, stdio.ErrRead) {
		return withoutStdin(t.Last.Outcome, err)
	}
	if err != nil {
		return startFailure("stdin", err)
	}
	out, err := e.Output.Open(t)
	if err != nil {
		_ = in.Close()
		return startFailure("stdout", err)
	}
	guard := startGuard(t, &c, in)
	defer guard.Close()
	p, err := e.start(t, c, in, out.Stdout, out.Stderr)
	if err != nil {
		out.Discard()
		_ = in.Close()
		return startFailure(t.Command[0], err)
	}
	in.Started()
	out.Begin()
	o := e.supervise(ctx, t, p, c)
	if in.Ended != nil {
		in.Ended()
	}
	out.End(c.Signals, &o)
	if in.Wait != nil && mayRepeat(&t.Policy, o) {
		in.Wait(proc.HaveOpen)
	}
	byItself := o.Stop == nil && o.Error != task.ErrorTimeout && o.Signal == ""
	if byItself && in.Leave != nil {
		in.Leave()
	}
	err = in.Close()
	if incomplete := (*stdio.StdinError)(nil); errors.As(err, &incomplete) {
		failed := incomplete.Outcome()
		failed.Stop = o.Stop
		return failed
	}
	if byItself { // what it has left on purpose may go on
		guard.Dismiss()
	}
	o.StdinRead = errors.Is(err, stdio.ErrRead)
	if o.Signal == "SIGPIPE" || o.Error == task.ErrorNone && o.Exit == task.ExitSignalBase+int(syscall.SIGPIPE) {
		o.Final = o.Final || stdio.ReaderGone(e.Output.Stdout)
	}
	return o
}

// mayRepeat reports whether another attempt may follow: after nearly all runs none does, and they end without a look.
func mayRepeat(p *task.Policy, o task.Outcome) bool {
	return o.ExitCode() != 0 || p.Consecutive > 1 || len(p.SuccessOn)+len(p.StopOn)+len(p.RetryOn) > 0
}

// startGuard starts the guard of a stdin that streams through a pipe of ours, and lets it follow the attempt.
func startGuard(t *task.Task, c *runner.Call, in *stdio.Input) *proc.Guard {
	if in.Held == nil {
		return nil
	}
	guard, note := proc.StartGuard(in.Held, t, c.Number), c.Starting
	if guard == nil { // one cannot be had
		in.Held = nil
		return nil
	}
	in.Fed = guard.Dismiss
	c.Starting = func(token string) {
		guard.Note(token)
		if note != nil {
			note(token)
		}
	}
	return guard
}

// start starts the command. If the system cannot execute the file, it gives it to the shell, as execvp does.
func (e *Executor) start(t *task.Task, call runner.Call, in *stdio.Input,
	stdout, stderr *os.File) (p *proc.Process, err error) {
	if err := checkDirectory(e.Dir); err != nil {
		return nil, err
	}
	remembered := e.name == t.Command[0]
	if !remembered {
		if e.path, err = lookPath(t.Command[0], e.Dir, e.Env); err != nil {
			return nil, err
		}
	}
	e.name = t.Command[0]
	c := e.command(t, call.Number, in.File, stdout, stderr)
	c.Path, c.Argv, c.Starting, c.Started = e.path, t.Command, call.Starting, in.Bind
	c.Guarded, c.Attempt = in.Held != nil, call.Number
	p, err = c.Start()
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		c.Path, c.Argv = shell, append([]string{shell, e.path}, t.Command[1:]...)
		return c.Start()
	case err != nil && remembered: // the program may have moved since
		e.name = ""
		return e.start(t, call, in, stdout, stderr)
	}
	return p, err
}

// command returns what all processes of a task have in common.
func (e *Executor) command(t *task.Task, number int, stdin, stdout, stderr *os.File) *proc.Command {
	if e.inherited == nil {
		e.inherited = inherited(e.Env, e.Dir)
	}
	return &proc.Command{
		Env: slices.Concat(e.inherited, attemptEnvironment(t, number)),
		Dir: e.Dir, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		TaskID: t.ID, SharedGroup: e.SharedGroup, OnTerminal: e.OnTerminal,
	}
}

// Flush implements runner.Executor.
func (e *Executor) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	return e.Output.Flush(t, signals)
}

// HoldsOutput implements runner.Executor.
func (e *Executor) HoldsOutput(t *task.Task) bool {
	return e.Output.HoldsOutput(t)
}

// supervise waits for the end of a started process, passes signals on, and stops it when ctx ends.
func (e *Executor) supervise(ctx context.Context, t *task.Task, p *proc.Process, c runner.Call) task.Outcome {
	s := &supervisor{process: p, killAfter: t.Policy.KillAfter, signals: c.Signals, terminal: e.Terminal}
	s.secondStopKills = e.SecondStopKills
	if began := time.Now(); began.Sub(e.ended) < e.TerminalDelay {
		s.young = began.Add(e.TerminalDelay)
	}
	if c.Number > 0 { // a hook gets TERM
		s.first = t.Options.Signal
	}
	restoreTerminal := p.SaveTerminal()
	cancel := announce(p.Token, c.Started)
	s.run(ctx)
	cancel()
	if s.stop != nil && c.Started != nil {
		left, err := proc.Survivors{}.Find(t, task.Attempt{Number: c.Number, Process: p.Token()})
		if left == "" && err == nil {
			_ = c.Started(proc.NothingLeft) // so that a resume can go on wherever it runs
		}
	}
	o := p.Reap()
	e.ended = time.Now()
	if o.Signal != "" {
		restoreTerminal()
	}
	o.GroupLeft = o.Exit != 0 && s.process.LeftGroup()
	s.awaitStop(o, c.Number > 0)
	o.Stop = s.stop
	if s.timedOut {
		o.Error, o.Message = task.ErrorTimeout, context.Cause(ctx).Error()
	}
	return o
}

// announceAfter is how long an attempt runs before its token is stored. Most attempts have ended by then and need no
// write: for them it is only noted.
const announceAfter = 10 * time.Millisecond

// announceAgain is the time between two tries to store a token.
const announceAgain = time.Second

// announce calls started with the token after a delay, and again until that has stored it. The caller must call cancel
// before the process is reaped; it waits for a call that has begun.
func announce(token func() string, started func(string) bool) (cancel func()) {
	if started == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	timer := time.AfterFunc(announceAfter, func() {
		defer close(done)
		for text := token(); text != "" && !started(text); {
			select {
			case <-time.After(announceAgain):
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		if !timer.Stop() {
			<-done
		}
	}
}

// supervisor passes signals and the timeout to a running process.
type supervisor struct {
	process         *proc.Process
	first           string // the signal of a timeout; empty: TERM
	killAfter       time.Duration
	secondStopKills time.Duration
	signals         <-chan os.Signal
	young           time.Time // until then it may have missed what a key on the terminal sent
	terminal        bool      // there is one that may be closed

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
			s.process.Terminate(s.first)
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
		if s.stop == nil && task.Stops(sig) && time.Now().Before(s.young) {
			s.process.Signal(sig)
		}
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

// noteStop takes TERM for the signal where it comes together with HUP, as from a service manager that stops a session:
// nobody has closed the terminal.
func (s *supervisor) noteStop(sig os.Signal) {
	switch {
	case s.stop == nil && task.Stops(sig):
		s.stop, s.stopTime = sig, time.Now()
	case s.terminal && s.stop == syscall.SIGHUP && sig == syscall.SIGTERM && time.Since(s.stopTime) < runner.TogetherDelay:
		s.stop = sig
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

// awaitStop waits for retry's own copy of a signal that has ended the process: it tells that the user, or the system,
// stopped both. The process has either died of the signal, or caught it and exited with the status that shells use
// then, or with one of its own while a part of its group has not ended yet. After any other failure it takes the signal
// only where that is there already.
func (s *supervisor) awaitStop(o task.Outcome, isAttempt bool) {
	sig := syscall.Signal(o.Exit - task.ExitSignalBase)
	var late <-chan time.Time
	switch {
	case s.timedOut || o.Exit == 0:
		return
	case s.process.GetsFromTerminal(sig):
		late = time.After(terminalDelay)
	case isAttempt && (o.GroupLeft || sig != syscall.SIGINT && task.Stops(sig)):
		late = time.After(runner.TogetherDelay)
	}
	for s.stop == nil {
		select {
		case sig := <-s.signals:
			s.noteStop(sig)
			continue
		default:
		}
		if late == nil {
			return
		}
		select {
		case sig := <-s.signals:
			s.noteStop(sig)
		case <-late:
			proc.AwaitSignals()
			late = nil
		}
	}
}
