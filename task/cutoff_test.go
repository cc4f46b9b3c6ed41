package task

import "testing"

// What a signal that stops a whole service has ended may have left something running, whatever was decided then.
func TestCutOff(t *testing.T) {
	tests := map[string]struct {
		outcome Outcome
		verdict Verdict
		want    bool
	}{
		"in flight":        {outcome: Outcome{Exit: NoExit}, want: true},
		"stopped":          {outcome: Outcome{Exit: 1}, verdict: VerdictInterrupted, want: true},
		"cancelled":        {outcome: Outcome{Exit: 1}, verdict: VerdictCancelled, want: true},
		"failed":           {outcome: Outcome{Exit: 1}, verdict: VerdictFailed},
		"killed":           {outcome: Outcome{Exit: 137, Signal: "SIGKILL"}, verdict: VerdictExhausted, want: true},
		"TERM to all":      {outcome: Outcome{Exit: 143, Signal: "SIGTERM"}, verdict: VerdictRetry, want: true},
		"wanted by a rule": {outcome: Outcome{Exit: 143, Signal: "SIGTERM"}, verdict: VerdictSucceeded},
		"crashed":          {outcome: Outcome{Exit: 139, Signal: "SIGSEGV"}, verdict: VerdictRetry},
		"a timeout":        {outcome: Outcome{Exit: 143, Signal: "SIGTERM", Error: ErrorTimeout}, verdict: VerdictRetry},
	}
	for name, tt := range tests {
		a := Attempt{Number: 1, Outcome: tt.outcome, Decision: Decision{Verdict: tt.verdict}}
		if got := a.CutOff(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	if (Attempt{}).CutOff() {
		t.Error("no attempt: got true, want false")
	}
}

// The input of a run that was to go on is not there for a later one, however it was ended.
func TestEndedCutOff(t *testing.T) {
	ended := func(v Verdict) Attempt { return Attempt{Number: 1, Outcome: exit(1), Decision: Decision{Verdict: v}} }
	for _, tt := range []struct {
		name string
		task Task
		want bool
	}{
		{"cancelled before it began", Task{Status: Cancelled}, true},
		{"cancelled in a wait", Task{Status: Cancelled, AttemptCount: 1, Last: ended(VerdictRetry)}, true},
		{"cancelled in an attempt", Task{Status: Cancelled, AttemptCount: 1, Last: ended(VerdictCancelled)}, true},
		{"its budget ended in a wait", Task{Status: Exhausted, Last: ended(VerdictRetry)}, false},
		{"its budget ended with an attempt", Task{Status: Exhausted, Last: ended(VerdictExhausted)}, false},
		{"may have taken effect", Task{Status: Failed, Reason: ReasonAmbiguous, Last: ended(VerdictFailed)}, true},
		{"failed", Task{Status: Failed, Last: ended(VerdictFailed)}, false},
		{"succeeded", Task{Status: Succeeded, Last: ended(VerdictSucceeded)}, false},
	} {
		if got := tt.task.EndedCutOff(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What the journal does not know of may run as long as an attempt was to follow.
func TestMayHaveLeft(t *testing.T) {
	ended := func(v Verdict) Attempt { return Attempt{Number: 1, Outcome: exit(1), Decision: Decision{Verdict: v}} }
	for _, tt := range []struct {
		name string
		task Task
		want bool
	}{
		{"before its first attempt", Task{}, true},
		{"between two attempts", Task{AttemptCount: 1, Last: ended(VerdictRetry)}, true},
		{"cancelled there", Task{Status: Cancelled, AttemptCount: 1, Last: ended(VerdictRetry)}, true},
		{"after a requeue", Task{Status: Cancelled, AttemptCount: 1, RequeuedAfter: 1, Last: ended(VerdictFailed)}, true},
		{"interrupted", Task{AttemptCount: 1, Last: ended(VerdictInterrupted)}, true},
		{"failed", Task{Status: Failed, AttemptCount: 1, Last: ended(VerdictFailed)}, false},
		{"exhausted", Task{Status: Exhausted, AttemptCount: 1, Last: ended(VerdictExhausted)}, false},
	} {
		if got := tt.task.MayHaveLeft(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
