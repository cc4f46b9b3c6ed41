package cmdexec

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// lastSignal ends catcher. Pending signals are handled in the order of their numbers, so everything that was sent
// before is written before.
const lastSignal = syscall.Signal(64)

// catcher is a script that writes the name of each signal that it gets.
const catcher = `for s in HUP INT QUIT USR1 USR2 TERM CONT WINCH; do trap "echo $s" $s; done
	trap 'echo last; exit 0' 64` + untilStopped

var signals = map[string]syscall.Signal{
	"HUP": unix.SIGHUP, "INT": unix.SIGINT, "QUIT": unix.SIGQUIT, "USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2,
	"TERM": unix.SIGTERM, "WINCH": unix.SIGWINCH, "last": lastSignal,
}

// A process that followed another one at once may have missed what a key sent: it gets the first such signal, no other.
func TestAYoungProcessGetsTheSignalOfAKey(t *testing.T) {
	r := script(t, catcher)
	r.executor.SharedGroup, r.executor.TerminalDelay = true, time.Hour
	before := task.Task{Command: []string{"true"}}
	r.executor.Execute(t.Context(), &before, runner.Call{Number: 1})
	r.start().expect("ready")
	r.send(signals["WINCH"], signals["INT"], signals["QUIT"], lastSignal)
	if got, want := r.rest(), "INT\nlast\n"; got != want {
		t.Errorf("signals: got %q, want %q", got, want)
	}
	r.end()
}

func TestForwardsSignals(t *testing.T) {
	tests := []struct {
		name         string
		stops        bool
		fromTerminal bool // the terminal sends it to a shared group itself
	}{
		{name: "TERM", stops: true},
		{name: "INT", stops: true, fromTerminal: true},
		{name: "HUP", stops: true},
		{name: "QUIT", stops: true, fromTerminal: true},
		{name: "USR1"},
		{name: "USR2"},
		{name: "WINCH", fromTerminal: true},
	}
	for _, tt := range tests {
		for group, shared := range map[string]bool{"own": false, "shared": true} {
			t.Run(tt.name+" "+group, func(t *testing.T) {
				r := script(t, catcher)
				r.executor.SharedGroup = shared
				r.start().expect("ready")
				r.send(signals[tt.name], lastSignal)
				want := tt.name + "\n"
				switch {
				case shared && tt.fromTerminal:
					want = ""
				case tt.stops:
					want += "CONT\n" // since a stopped command cannot end
				}
				want += "last\n"
				if got := r.rest(); got != want {
					t.Errorf("signals: got %q, want %q", got, want)
				}
				var stop os.Signal
				if tt.stops {
					stop = signals[tt.name]
				}
				r.check(task.Outcome{Stop: stop})
			})
		}
	}
}

// Two pending signals of the same kind become one, but not the real-time signals that helperCount counts.
func TestForwardsASignalOnce(t *testing.T) {
	for _, shared := range []bool{false, true} {
		r := newRig(t, helperCommand("count")...)
		r.executor.SharedGroup = shared
		r.start().expect("ready")
		r.send(countedSignal, countedSignal, countedSignal, lastSignal)
		if got, want := r.rest(), strings.Repeat("signal 40\n", 3); got != want {
			t.Errorf("shared group %t: got %q, want %q", shared, got, want)
		}
	}
}

func TestForwardsToTheWholeGroup(t *testing.T) {
	r := script(t, `sh -c "$1" & exec sh -c "$1"`, catcher).start()
	r.expect("ready", "ready")
	r.send(syscall.SIGUSR1)
	r.expect("USR1", "USR1")
	r.send(lastSignal)
	r.expect("last", "last")
	r.check(task.Outcome{})
}

func TestSecondStopSignalKills(t *testing.T) {
	killed := func(first os.Signal) task.Outcome { return task.Outcome{Exit: 137, Signal: "SIGKILL", Stop: first} }
	tests := map[string]struct {
		shared  bool
		signals string
		want    task.Outcome
	}{
		"the same":       {signals: "TERM TERM", want: killed(syscall.SIGTERM)},
		"another":        {signals: "INT TERM", want: killed(syscall.SIGINT)},
		"one in between": {signals: "HUP USR1 QUIT", want: killed(syscall.SIGHUP)},
		"others do not count": {
			signals: "USR1 USR2 WINCH USR1 TERM last", want: task.Outcome{Stop: syscall.SIGTERM},
		},
		"shared, not the terminal": {shared: true, signals: "TERM HUP", want: killed(syscall.SIGTERM)},
		// The prompt of an interpreter gets Ctrl-C many times.
		"shared, the terminal's": {
			shared: true, signals: "INT INT QUIT last", want: task.Outcome{Stop: syscall.SIGINT},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, catcher)
			r.executor.SharedGroup = tt.shared
			r.start().expect("ready")
			for name := range strings.FieldsSeq(tt.signals) {
				r.send(signals[name])
			}
			r.check(tt.want)
		})
	}
}

// After a timeout the rest of the group has until KILL when the leader has ended. It gets the signals that come
// meanwhile.
func TestSignalsAfterTheLeader(t *testing.T) {
	r := script(t, withGrandchild("echo $$; trap 'exit 9' TERM"), catcher).start()
	leader := r.pid()
	r.expect("ready")
	r.timeout()
	testkit.Must(t, unix.Waitid(unix.P_PID, leader, nil, unix.WEXITED|unix.WNOWAIT, nil))
	r.expectAny("TERM", "CONT")
	for range 3 { // the first may come before the supervisor has seen the end of the leader
		r.send(syscall.SIGUSR1)
		r.expect("USR1")
	}
	r.send(syscall.SIGHUP)
	r.expect("HUP", "CONT")
	r.send(syscall.SIGTERM) // the second one that asks to stop
	if rest := r.rest(); rest != "" {
		t.Errorf("signals of the group: got %q, want only its end", rest)
	}
	want := timedOut(9, "")
	want.Stop = syscall.SIGHUP
	r.check(want)
}

func TestContinuesWhatIsStoppedAndHasToEnd(t *testing.T) {
	tests := map[string]struct {
		end  func(*rig)
		want task.Outcome
	}{
		"timeout": {end: (*rig).timeout, want: timedOut(9, "")},
		"signal": {
			end: func(r *rig) { r.send(syscall.SIGTERM) }, want: task.Outcome{Exit: 9, Stop: syscall.SIGTERM},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, "trap 'exit 9' TERM; echo $$; kill -STOP $$; exit 8").start()
			testkit.Must(t, unix.Waitid(unix.P_PID, r.pid(), nil, unix.WSTOPPED|unix.WNOWAIT, nil))
			tt.end(r)
			r.check(tt.want)
		})
	}
}

// Ctrl-C can end the command before retry gets its own copy of the signal.
func TestCtrlCThatEndsTheCommandFirst(t *testing.T) {
	for name, code := range map[string]string{"INT": "kill -INT $$", "QUIT": "ulimit -c 0; kill -QUIT $$"} {
		r := script(t, "echo $$; read -r _; "+code)
		r.executor.SharedGroup = true
		r.start().endAndReap()
		r.send(signals[name])
		number := signals[name]
		r.check(task.Outcome{Exit: task.ExitSignalBase + int(number), Signal: "SIG" + name, Stop: number})
	}
}

// So can a TERM that is sent to both, as by pkill -f.
func TestSignalToAllThatEndsTheCommandFirst(t *testing.T) {
	for _, tt := range []struct {
		name, code, signal string
		shared             bool
	}{
		{name: "TERM", code: "kill -TERM $$", signal: "SIGTERM"},
		{name: "TERM", code: "exit 143"},
		{name: "HUP", code: "kill -HUP $$", signal: "SIGHUP"},
		{name: "TERM", code: "kill -TERM $$", signal: "SIGTERM", shared: true},
	} {
		r := script(t, "echo $$; read -r _; "+tt.code)
		r.executor.SharedGroup = tt.shared
		r.start().endAndReap()
		number := signals[tt.name]
		r.send(number)
		r.check(task.Outcome{Exit: task.ExitSignalBase + int(number), Signal: tt.signal, Stop: number})
	}
}

// A script can end with a status of its own while a part of its group has not ended yet.
func TestSignalToAllThatLeavesAPartRunning(t *testing.T) {
	r := script(t, `sleep 1000 >/dev/null 2>&1 & echo $!; echo $$; read -r _; exit 1`)
	r.start()
	left := r.pid()
	t.Cleanup(func() { _ = syscall.Kill(left, syscall.SIGKILL) })
	r.endAndReap()
	r.send(syscall.SIGTERM)
	r.check(task.Outcome{Exit: 1, GroupLeft: true, Stop: syscall.SIGTERM})
}

// After another failure retry takes a signal that is there already, and waits for none: a service manager signals retry
// first, and many programs exit with 1 then. A success stays one.
func TestSignalThatIsThereAlready(t *testing.T) {
	tests := []struct {
		outcome task.Outcome
		comes   bool
		want    os.Signal
	}{
		{outcome: task.Outcome{Exit: 1}, comes: true, want: syscall.SIGTERM},
		{outcome: task.Outcome{Exit: 1}},
		{outcome: task.Outcome{Exit: 138, Signal: "SIGUSR1"}, comes: true, want: syscall.SIGTERM},
		{outcome: task.Outcome{Exit: 130, Signal: "SIGINT"}},
		{outcome: task.Outcome{Exit: 0}, comes: true},
	}
	for _, tt := range tests {
		signals := make(chan os.Signal, 2)
		if tt.comes {
			signals <- syscall.SIGUSR2 // which asks for nothing
			signals <- syscall.SIGTERM
		}
		s := &supervisor{process: &proc.Process{}, signals: signals}
		s.awaitStop(tt.outcome, true)
		if s.stop != tt.want {
			t.Errorf("%+v, a signal comes %t: got %v, want %v", tt.outcome, tt.comes, s.stop, tt.want)
		}
	}
}

// On a terminal TERM counts where it comes together with HUP: nobody has closed that.
func TestTermTogetherWithHup(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		later    time.Duration
		want     os.Signal
	}{
		{true, 0, syscall.SIGTERM},
		{true, time.Second, syscall.SIGHUP},
		{false, 0, syscall.SIGHUP},
	} {
		s := &supervisor{terminal: tt.terminal}
		s.noteStop(syscall.SIGHUP)
		s.stopTime = s.stopTime.Add(-tt.later)
		s.noteStop(syscall.SIGTERM)
		if s.stop != tt.want {
			t.Errorf("on a terminal %t, TERM %v later: got %v, want %v", tt.terminal, tt.later, s.stop, tt.want)
		}
	}
}

func TestSignalWithoutAName(t *testing.T) {
	script(t, "kill -40 $$").start().check(task.Outcome{Exit: 168, Signal: "SIG40"})
}

func TestLeadsAGroupOfItsOwn(t *testing.T) {
	for _, shared := range []bool{false, true} {
		r := script(t, "echo $$"+untilStopped)
		r.executor.SharedGroup = shared
		child := r.start().pid()
		group, err := unix.Getpgid(child)
		testkit.Must(t, err)
		want := child
		if shared {
			want = unix.Getpgrp()
		}
		if group != want {
			t.Errorf("shared %t: group of process %d: got %d, want %d", shared, child, group, want)
		}
		r.send(syscall.SIGTERM)
		r.check(task.Outcome{Exit: 143, Signal: "SIGTERM", Stop: syscall.SIGTERM})
	}
}

// In a shared group without a terminal, as with --foreground in a script, only retry can send INT to the command.
func TestForwardsINTWithoutATerminal(t *testing.T) {
	r := script(t, catcher)
	r.executor.SharedGroup, r.executor.OnTerminal = true, func() bool { return false }
	r.start().expect("ready")
	r.send(signals["INT"], lastSignal)
	if got, want := r.rest(), "INT\nCONT\nlast\n"; got != want {
		t.Errorf("signals: got %q, want %q", got, want)
	}
}

// timeout(1) signals its child and then its group, and a service manager sends HUP after TERM. Both ask once, not
// twice.
func TestTwoStopSignalsTogetherDoNotKill(t *testing.T) {
	for _, second := range []string{"TERM", "HUP"} {
		r := script(t, catcher)
		r.executor.SecondStopKills = time.Hour
		r.start().expect("ready")
		r.send(signals["TERM"], signals[second], lastSignal)
		r.check(task.Outcome{Stop: syscall.SIGTERM})
	}
}
