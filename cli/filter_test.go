package cli

import (
	"testing"

	"github.com/10f93571/retry/task"
)

// Of a million tasks that wait for any worker, none is read where only those can pass that somebody has begun.
func TestAFilterLeavesOutTheQueue(t *testing.T) {
	for _, tt := range []struct {
		flags filterFlags
		want  bool
	}{
		{filterFlags{Status: []wantedStatus{interrupted}}, true},
		{filterFlags{Status: []wantedStatus{running}}, true},
		{filterFlags{Status: []wantedStatus{running, interrupted}}, true},
		{filterFlags{Status: []wantedStatus{waiting}}, false},
		{filterFlags{Status: []wantedStatus{interrupted, waiting}}, false},
		{filterFlags{Status: []wantedStatus{wantedStatus(task.Pending)}}, false},
		{filterFlags{Live: true}, false},
		{filterFlags{}, false},
	} {
		if got := tt.flags.stored(0).Begun; got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.flags, got, tt.want)
		}
	}
}
