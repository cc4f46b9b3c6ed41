package runner

import (
	"testing"
	"time"
)

// A suspended machine's timers stand still while its wall clock goes on; a clock set back must not prolong a wait.
func TestUntilDueTakesTheShorterWay(t *testing.T) {
	now := time.Now()
	due := now.Add(time.Hour)
	if got := untilDue(due, now.Add(time.Minute)); got != 59*time.Minute {
		t.Errorf("both clocks agree: %v", got)
	}
	wallOnly := now.Round(0)
	if got := untilDue(due, wallOnly.Add(2*time.Hour)); got > 0 {
		t.Errorf("the wall clock is past it: %v", got)
	}
	if got := untilDue(due.Round(0).Add(time.Hour), now.Add(time.Minute)); got != 119*time.Minute {
		t.Errorf("wall clock alone: %v", got)
	}
}
