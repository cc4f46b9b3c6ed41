package proc

import (
	"errors"
	"testing"
	"time"
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
