package runner

import (
	"os"
	"syscall"
	"testing"
)

func TestExitCode(t *testing.T) {
	succeeded := Decision{Verdict: VerdictSucceeded}
	exhausted := Decision{Verdict: VerdictExhausted}
	tests := []struct {
		name     string
		decision Decision
		outcome  Outcome
		want     int
	}{
		{"success", succeeded, exit(0), 0},
		{"success by success-on", succeeded, exit(3), 0},
		{"the last attempt's", exhausted, exit(7), 7},
		{"the last attempt's was 0", exhausted, exit(0), 1},
		{"signal", exhausted, Outcome{Exit: 137, Signal: "SIGKILL"}, 137},
		{"timeout", exhausted, Outcome{Exit: 143, Signal: "SIGTERM", Error: ErrorTimeout}, 124},
		{"timeout of a command that then exits 0", exhausted, Outcome{Exit: 0, Error: ErrorTimeout}, 124},
		{"not executable", exhausted, Outcome{Exit: 126, Error: ErrorNotExecutable}, 126},
		{"not found", exhausted, Outcome{Exit: 127, Error: ErrorNotFound}, 127},
		{"cannot start", exhausted, Outcome{Exit: 125, Error: ErrorStart}, 125},
		{"no outcome", exhausted, Crashed(), 125},
	}
	for _, tt := range tests {
		if got := (Result{Decision: tt.decision, Outcome: tt.outcome}).ExitCode(); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestDeathSignal(t *testing.T) {
	cancelled := Decision{Verdict: VerdictCancelled}
	interrupted := Decision{Verdict: VerdictInterrupted}
	term, intr := syscall.SIGTERM, syscall.SIGINT
	tests := []struct {
		name   string
		result Result
		want   os.Signal
	}{
		{"success", Result{Decision: Decision{Verdict: VerdictSucceeded}, Signal: intr, Outcome: Outcome{Stop: intr}}, nil},
		{"INT in a wait", Result{Decision: cancelled, Signal: intr}, intr},
		{"INT in an attempt that then exits", Result{Decision: cancelled, Signal: intr, Outcome: Outcome{Exit: 1, Stop: intr}}, intr},
		{"TERM in a wait", Result{Decision: interrupted, Signal: term, Outcome: exit(1)}, term},
		{"TERM that the command died of", Result{Decision: interrupted, Signal: term, Outcome: Outcome{Exit: 143, Signal: "SIGTERM", Stop: term}}, term},
		{"TERM that the command handled", Result{Decision: interrupted, Signal: term, Outcome: Outcome{Exit: 3, Stop: term}}, nil},
		{"cancelled by another process", Result{Decision: cancelled}, nil},
		{"TERM in the hook of a success", Result{Decision: Decision{Verdict: VerdictSucceeded}, Hooked: term}, term},
		{"INT in the hook of a failure", Result{Decision: Decision{Verdict: VerdictExhausted}, Outcome: exit(7), Hooked: intr}, intr},
	}
	for _, tt := range tests {
		if got := tt.result.DeathSignal(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
