package runner

import "testing"

// The greatest number grows with each attempt that used up nothing, and no limit stays none.
func TestMaxAttempts(t *testing.T) {
	for _, tt := range []struct{ attempts, interrupted, want int }{{5, 0, 5}, {5, 2, 7}, {1, 1, 2}, {0, 0, 0}, {0, 3, 0}} {
		task := Task{Policy: Policy{Attempts: tt.attempts}, History: History{Interrupted: tt.interrupted}}
		if got := task.MaxAttempts(); got != tt.want {
			t.Errorf("%d attempts, %d interrupted: %d, want %d", tt.attempts, tt.interrupted, got, tt.want)
		}
	}
}

// No attempt has a greater number, however often the task is interrupted on its way.
func TestNoAttemptIsBeyondTheGreatest(t *testing.T) {
	p := policy(t, func(p *Policy) { p.Attempts = 3 })
	task := Task{Policy: *p, History: History{Began: epoch}}
	for i := 0; ; i++ {
		o := exit(1)
		if i%2 == 0 {
			o = Crashed()
		}
		task.AttemptCount++
		if greatest := task.MaxAttempts(); task.AttemptCount > greatest {
			t.Fatalf("attempt %d of %d", task.AttemptCount, greatest)
		}
		d := Decide(&task.Policy, task.History, o, epoch, half)
		task.Decided(Attempt{Number: task.AttemptCount, Outcome: o, Decision: d}, epoch)
		if task.Status.Finished() {
			break
		}
	}
	if task.AttemptCount != 6 || task.Reason != ReasonAttempts {
		t.Errorf("%s (%s) after %d", task.Status, task.Reason, task.AttemptCount)
	}
}
