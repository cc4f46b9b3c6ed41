package cmdexec

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/runner"
)

func TestForwardsEachSignalOnce(t *testing.T) {
	tests := []struct {
		name         string
		stops        bool
		fromTerminal bool // the terminal sends it to a shared group by itself
	}{
		{"TERM", true, false},
		{"INT", true, true},
		{"HUP", true, false},
		{"QUIT", true, true},
		{"USR1", false, false},
		{"USR2", false, false},
		{"WINCH", false, true},
		{"RT", false, false},
	}
	for _, tt := range tests {
		for _, shared := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{false: " to its group", true: " in a shared group"}[shared], func(t *testing.T) {
				r := newRig(t, role("catch")...)
				r.executor.SharedGroup = shared
				r.start().expect("ready")
				r.send(caught[tt.name], lastSignal)
				if !shared || !tt.fromTerminal {
					r.expect(tt.name)
				}
				r.expect("last")
				want := runner.Outcome{}
				if tt.stops {
					want.Stop = caught[tt.name]
				}
				r.check(want)
			})
		}
	}
}

func TestForwardsToTheWholeGroup(t *testing.T) {
	r := script(t, `"$@" & exec "$@"`, role("catch")...).start()
	r.expect("ready", "ready")
	r.send(syscall.SIGUSR1, lastSignal)
	got := []string{r.line(), r.line(), r.line(), r.line()}
	slices.Sort(got)
	if want := []string{"USR1", "USR1", "last", "last"}; !slices.Equal(got, want) {
		t.Errorf("the group got %q, want %q", got, want)
	}
	r.check(runner.Outcome{})
}

// What the terminal sends to a shared group never kills, however often: a prompt takes Ctrl-C as "another line".
func TestSecondStopSignalKills(t *testing.T) {
	tests := map[string]struct {
		shared  bool
		signals []string
		want    runner.Outcome
	}{
		"the same":                 {false, []string{"TERM", "TERM"}, runner.Outcome{Exit: 137, Signal: "SIGKILL", Stop: syscall.SIGTERM}},
		"another":                  {false, []string{"INT", "TERM"}, runner.Outcome{Exit: 137, Signal: "SIGKILL", Stop: syscall.SIGINT}},
		"one in between":           {false, []string{"HUP", "USR1", "QUIT"}, runner.Outcome{Exit: 137, Signal: "SIGKILL", Stop: syscall.SIGHUP}},
		"others do not count":      {false, []string{"USR1", "USR2", "WINCH", "USR1", "TERM", "last"}, runner.Outcome{Stop: syscall.SIGTERM}},
		"the terminal's":           {true, []string{"INT", "INT", "QUIT", "INT", "last"}, runner.Outcome{Stop: syscall.SIGINT}},
		"shared, not the terminal": {true, []string{"TERM", "HUP"}, runner.Outcome{Exit: 137, Signal: "SIGKILL", Stop: syscall.SIGTERM}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, role("catch")...)
			r.executor.SharedGroup = tt.shared
			r.start().expect("ready")
			for _, sig := range tt.signals {
				r.send(caught[sig])
			}
			r.check(tt.want)
		})
	}
}

func TestTimeoutContinuesWhatIsStopped(t *testing.T) {
	r := script(t, "trap 'exit 9' TERM; echo $$; kill -STOP $$; exit 8").start()
	ok(t, unix.Waitid(unix.P_PID, r.pid(), nil, unix.WSTOPPED|unix.WNOWAIT, nil))
	r.timeout()
	r.check(runner.Outcome{Exit: 9, Error: runner.ErrorTimeout, Message: "timed out"})
}

// After a timeout the leader may be gone while the rest of its group has its time. Signals are for that rest then.
func TestSignalsAfterTheLeader(t *testing.T) {
	r := script(t, `echo $$; trap 'exit 9' TERM; "$@" & wait`, role("catch")...).start()
	leader := r.pid()
	r.expect("ready")
	r.timeout()
	awaitExit(leader)
	r.expect("TERM", "CONT")
	for range 5 { // the first may come before the supervisor knows about the leader
		r.send(syscall.SIGUSR1)
		r.expect("USR1")
	}
	r.send(syscall.SIGHUP)
	r.expect("HUP")
	r.send(syscall.SIGTERM) // the second one that asks to stop
	if rest := r.rest(); rest != "" {
		t.Errorf("the group got %q instead of its end", rest)
	}
	r.check(runner.Outcome{Exit: 9, Error: runner.ErrorTimeout, Message: "timed out", Stop: syscall.SIGHUP})
}

// The terminal's Ctrl-C can end the command before retry has seen its own copy: it is the same Ctrl-C.
func TestCtrlCThatEndsTheCommandFirst(t *testing.T) {
	for sig, code := range map[os.Signal]string{
		syscall.SIGINT:  "kill -INT $$",
		syscall.SIGQUIT: "ulimit -c 0; kill -QUIT $$",
	} {
		r := script(t, "echo $$; read -r _; "+code)
		r.executor.SharedGroup = true
		stdin := r.stdin()
		r.start()
		child := r.pid()
		ok(t, stdin.Close())
		awaitExit(child)
		r.send(sig)
		number := sig.(syscall.Signal)
		r.check(runner.Outcome{Exit: runner.ExitSignalBase + int(number), Signal: unix.SignalName(number), Stop: sig})
	}
	_ = time.Now
}
