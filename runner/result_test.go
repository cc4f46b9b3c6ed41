package runner

import (
	"os"
	"syscall"
	"testing"

	"github.com/10f93571/retry/task"
)

func TestExitCode(t *testing.T) {
	succeeded := task.Decision{Verdict: task.VerdictSucceeded}
	exhausted := task.Decision{Verdict: task.VerdictExhausted}
	tests := []struct {
		name     string
		decision task.Decision
		outcome  task.Outcome
		want     int
	}{
		{"success", succeeded, exit(0), 0},
		{"success by success-on", succeeded, exit(3), 0},
		{"the last attempt's", exhausted, exit(7), 7},
		{"the last attempt's was 0", exhausted, exit(0), 1},
		{"signal", exhausted, task.Outcome{Exit: 137, Signal: "SIGKILL"}, 137},
		{"timeout", exhausted, task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout}, 124},
		{"timeout of a command that then exits 0", exhausted, task.Outcome{Exit: 0, Error: task.ErrorTimeout}, 124},
		{"not executable", exhausted, task.Outcome{Exit: 126, Error: task.ErrorNotExecutable}, 126},
		{"not found", exhausted, task.Outcome{Exit: 127, Error: task.ErrorNotFound}, 127},
		{"cannot start", exhausted, task.Outcome{Exit: 125, Error: task.ErrorStart}, 125},
		{"no outcome", exhausted, task.Crashed(), 125},
	}
	for _, tt := range tests {
		if got := (Result{Decision: tt.decision, Outcome: tt.outcome}).ExitCode(); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestDeathSignal(t *testing.T) {
	cancelled := task.Decision{Verdict: task.VerdictCancelled}
	interrupted := task.Decision{Verdict: task.VerdictInterrupted}
	term, intr := syscall.SIGTERM, syscall.SIGINT
	tests := []struct {
		name   string
		result Result
		want   os.Signal
	}{
		{"success", Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}, Signal: intr,
			Outcome: task.Outcome{Stop: intr}}, nil},
		{"INT in a wait", Result{Decision: cancelled, Signal: intr}, intr},
		{"INT in an attempt that then exits",
			Result{Decision: cancelled, Signal: intr, Outcome: task.Outcome{Exit: 1, Stop: intr}}, intr},
		{"TERM in a wait", Result{Decision: interrupted, Signal: term, Outcome: exit(1)}, term},
		{"TERM that the command died of",
			Result{Decision: interrupted, Signal: term, Outcome: task.Outcome{Exit: 143, Signal: "SIGTERM", Stop: term}}, term},
		{"TERM that the command handled",
			Result{Decision: interrupted, Signal: term, Outcome: task.Outcome{Exit: 3, Stop: term}}, nil},
		{"cancelled by another process", Result{Decision: cancelled}, nil},
		{"TERM in the hook of a success",
			Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}, LateSignal: term}, term},
		{"INT in the hook of a failure",
			Result{Decision: task.Decision{Verdict: task.VerdictExhausted}, Outcome: exit(7), LateSignal: intr}, intr},
	}
	for _, tt := range tests {
		if got := tt.result.DeathSignal(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
