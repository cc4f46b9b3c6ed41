package runner

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The drawing in docs/state-machine.md and the code say the same.
func TestTransitionsAreAsDrawn(t *testing.T) {
	text, err := os.ReadFile("../docs/state-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	var drawn []Transition
	arrow := regexp.MustCompile(`(?m)^\s*(\S+) --> (\S+): (\w+)$`)
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
