package task

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The maximum grows with each interrupted attempt; no limit stays no limit.
func TestMaxAttempts(t *testing.T) {
	for _, tt := range []struct{ attempts, interrupted, want int }{{5, 0, 5}, {5, 2, 7}, {1, 1, 2}, {0, 0, 0},
		{0, 3, 0}} {
		tk := Task{Policy: Policy{Attempts: tt.attempts}, History: History{Interrupted: tt.interrupted}}
		if got := tk.MaxAttempts(); got != tt.want {
			t.Errorf("%d attempts, %d interrupted: got %d, want %d", tt.attempts, tt.interrupted, got, tt.want)
		}
	}
}

// No attempt has a number above the maximum, however often the task is interrupted.
func TestNoAttemptIsBeyondTheGreatest(t *testing.T) {
	p := policy(t, func(p *Policy) { p.Attempts = 3 })
	tk := Task{Policy: *p, History: History{Began: epoch}}
	for i := 0; ; i++ {
		o := exit(1)
		if i%2 == 0 {
			o = Crashed()
		}
		tk.AttemptCount++
		if greatest := tk.MaxAttempts(); tk.AttemptCount > greatest {
			t.Fatalf("got attempt %d, want at most %d", tk.AttemptCount, greatest)
		}
		d := Decide(&tk.Policy, tk.History, o, epoch, half)
		tk.ApplyDecision(Attempt{Number: tk.AttemptCount, Outcome: o, Decision: d}, epoch)
		if tk.Status.Finished() {
			break
		}
	}
	if tk.AttemptCount != 6 || tk.Reason != ReasonAttempts {
		t.Errorf("got %s (%s) after %d, want %s after 6", tk.Status, tk.Reason, tk.AttemptCount, ReasonAttempts)
	}
}

// The drawing in docs/state-machine.md has the same transitions as the code.
func TestTransitionsAreAsDrawn(t *testing.T) {
	text, err := os.ReadFile("../docs/state-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	var drawn []Transition
	arrow := regexp.MustCompile(`(?m)^\s*(\S+) --> (\S+): (\w[\w ]*)$`)
	for _, m := range arrow.FindAllStringSubmatch(string(text), -1) {
		drawn = append(drawn, Transition{m[3], Status(strings.Trim(m[1], "[*]")), Status(m[2])})
	}
	for _, tr := range drawn {
		if !slices.Contains(Transitions(), tr) {
			t.Errorf("in the code: got no %+v, want it as drawn", tr)
		}
	}
	for _, tr := range Transitions() {
		if !slices.Contains(drawn, tr) {
			t.Errorf("in the drawing: got no %+v, want it as in the code", tr)
		}
	}
}

// Only a requeue follows the end of a task.
func TestFinishedIsFinal(t *testing.T) {
	for _, tr := range Transitions() {
		if tr.From.Finished() && tr.From != "" && tr.Event != EventRequeue {
			t.Errorf("got %+v, want only a requeue after the end", tr)
		}
	}
}

// Every verdict about an attempt is an allowed transition, so that the journal can write it.
func TestVerdictsAreAllowed(t *testing.T) {
	verdicts := []Verdict{VerdictSucceeded, VerdictRetry, VerdictFailed, VerdictExhausted, VerdictCancelled,
		VerdictInterrupted}
	for _, v := range verdicts {
		if !Allowed(string(v), InFlight, v.Status()) {
			t.Errorf("%s from %s to %s: got not allowed, want allowed", v, InFlight, v.Status())
		}
	}
	if Allowed(string(VerdictRetry), Succeeded, Pending) {
		t.Error("retry of a finished task: got allowed, want not allowed")
	}
}

// A task that has waited before its first attempt begins after that: its budget, and the age of its key.
func TestBeginNow(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		policy Policy
		want   time.Duration
	}{
		{name: "a budget", policy: Policy{Budget: time.Minute}, want: time.Minute},
		{name: "a deadline", policy: Policy{Budget: time.Minute, Deadline: true}, want: 40 * time.Second},
	} {
		tk := Task{CreatedAt: made, Policy: tt.policy, History: History{Began: made}}
		now := made.Add(20 * time.Second)
		tk.BeginNow(now)
		if got := tk.Policy.Left(tk.History.Began, now); got != tt.want {
			t.Errorf("%s: got %v left, want %v", tt.name, got, tt.want)
		}
	}
}
