package proc

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// A guard whose reader cannot be found may live as long as that. It must not look for it all the time.
func TestGuardPausesLonger(t *testing.T) {
	const looks = 20
	var kills int
	var pauses []time.Duration
	killReaders(func(within time.Duration) bool {
		pauses = append(pauses, within)
		return len(pauses) == looks
	}, func() error { kills++; return nil })
	if kills != looks-1 {
		t.Errorf("got %d kills in %d looks, want one after each but the last", kills, looks)
	}
	if pauses[0] != 0 || pauses[1] != firstPause || pauses[looks-1] != lastPause {
		t.Errorf("got pauses %v, want none, then %v to %v", pauses, firstPause, lastPause)
	}
}

// Where there is nothing to kill, or nothing can be found, the guard ends.
func TestGuardEnds(t *testing.T) {
	tests := []struct {
		name   string
		unread bool
		err    error
		kills  int
	}{
		{name: "nobody reads", unread: true},
		{name: "no process can be seen", err: errors.New("no /proc"), kills: 1},
	}
	for _, tt := range tests {
		kills := 0
		killReaders(func(time.Duration) bool { return tt.unread }, func() error { kills++; return tt.err })
		if kills != tt.kills {
			t.Errorf("%s: got %d kills, want %d", tt.name, kills, tt.kills)
		}
	}
}

// What a retry inside of a later attempt runs is spared, in another session too.
func TestGuardSparesLaterAttempts(t *testing.T) {
	later := exec.Command("sleep", "60")
	later.Env = []string{EnvTaskID + "=inner", EnvAttempt + "=1", EnvOuterTasks + "=outer:2"}
	later.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	testkit.Must(t, later.Start())
	defer func() { _, _ = later.Process.Kill(), later.Wait() }()
	for attempt, want := range map[int]int{1: 0, 2: 1} {
		left := processes(func(p info) bool { return p.Pid == later.Process.Pid })
		if len(left) != 1 {
			t.Fatalf("got %d processes, want the one that was started", len(left))
		}
		got := withoutLater(left, &task.Task{ID: "outer"}, task.Attempt{Number: attempt})
		if len(got) != want {
			t.Errorf("attempt %d: got %d processes to kill, want %d", attempt, len(got), want)
		}
	}
}
