package task

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The greatest number grows with each attempt that used up nothing, and no limit stays none.
func TestMaxAttempts(t *testing.T) {
	for _, tt := range []struct{ attempts, interrupted, want int }{{5, 0, 5}, {5, 2, 7}, {1, 1, 2}, {0, 0, 0}, {0, 3, 0}} {
		tk := Task{Policy: Policy{Attempts: tt.attempts}, History: History{Interrupted: tt.interrupted}}
		if got := tk.MaxAttempts(); got != tt.want {
			t.Errorf("%d attempts, %d interrupted: %d, want %d", tt.attempts, tt.interrupted, got, tt.want)
		}
	}
}

// No attempt has a greater number, however often the task is interrupted on its way.
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
			t.Fatalf("attempt %d of %d", tk.AttemptCount, greatest)
		}
		d := Decide(&tk.Policy, tk.History, o, epoch, half)
		tk.ApplyDecision(Attempt{Number: tk.AttemptCount, Outcome: o, Decision: d}, epoch)
		if tk.Status.Finished() {
			break
		}
	}
	if tk.AttemptCount != 6 || tk.Reason != ReasonAttempts {
		t.Errorf("%s (%s) after %d", tk.Status, tk.Reason, tk.AttemptCount)
	}
}

// The drawing in docs/state-machine.md and the code say the same.
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
			t.Errorf("drawn, but not in the code: %+v", tr)
		}
	}
	for _, tr := range Transitions() {
		if !slices.Contains(drawn, tr) {
			t.Errorf("in the code, but not drawn: %+v", tr)
		}
	}
}

// What is drawn as an end is one, and nothing leads out of it but a person's word.
func TestFinishedIsFinal(t *testing.T) {
	for _, tr := range Transitions() {
		if tr.From.Finished() && tr.From != "" && tr.Event != EventRequeue {
			t.Errorf("%+v leads out of an end", tr)
		}
	}
}

// Every verdict about an attempt has its arrow, so that the journal can write it.
func TestVerdictsAreAllowed(t *testing.T) {
	verdicts := []Verdict{VerdictSucceeded, VerdictRetry, VerdictFailed, VerdictExhausted, VerdictCancelled, VerdictInterrupted}
	for _, v := range verdicts {
		if !Allowed(string(v), InFlight, v.Status()) {
			t.Errorf("no arrow for %s from %s to %s", v, InFlight, v.Status())
		}
	}
	if Allowed(string(VerdictRetry), Succeeded, Pending) {
		t.Error("a finished task may be retried")
	}
}
