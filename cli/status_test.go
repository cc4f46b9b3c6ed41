package cli

import (
	"strings"
	"testing"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

func TestWantedStatus(t *testing.T) {
	for _, tt := range []struct {
		text string
		want wantedStatus
	}{{"FAILED", "FAILED"}, {"in_flight", "IN_FLIGHT"}, {" Interrupted ", interrupted}} {
		var s wantedStatus
		if err := s.UnmarshalText([]byte(tt.text)); err != nil || s != tt.want {
			t.Errorf("%q: %q, %v", tt.text, s, err)
		}
	}
	for _, text := range []string{"", "FAIL", "IN FLIGHT", "*"} {
		var s wantedStatus
		err := s.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), ""+
			"\nhint: give PENDING, IN_FLIGHT, INTERRUPTED, SUCCEEDED, EXHAUSTED, FAILED, CANCELLED") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// INTERRUPTED is stored nowhere: it takes the unfinished tasks, and those without an owner of them.
func TestFilterPasses(t *testing.T) {
	view := func(s task.Status, interrupted bool) render.TaskView {
		return render.TaskView{Task: &task.Task{Status: s}, Interrupted: interrupted}
	}
	tests := []struct {
		name   string
		wanted []wantedStatus
		view   render.TaskView
		want   bool
	}{
		{"no filter", nil, view(task.Failed, false), true},
		{"it", []wantedStatus{"FAILED"}, view(task.Failed, false), true},
		{"another", []wantedStatus{"FAILED"}, view(task.Pending, true), false},
		{"interrupted", []wantedStatus{interrupted}, view(task.Pending, true), true},
		{"not interrupted", []wantedStatus{interrupted}, view(task.InFlight, false), false},
		{"either", []wantedStatus{interrupted, "FAILED"}, view(task.Failed, false), true},
		{"the stored status of one that is interrupted", []wantedStatus{"IN_FLIGHT"}, view(task.InFlight, true), true},
	}
	for _, tt := range tests {
		flags := filterFlags{Status: tt.wanted}
		if got := flags.passes(tt.view); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		stored := flags.stored(7)
		if asks := len(tt.wanted) == 0 || len(stored.Statuses) > 0; !asks || (stored.Limit == 0) != (len(tt.wanted) > 0 && tt.wanted[0] == interrupted) {
			t.Errorf("%s: the journal is asked for %+v", tt.name, stored)
		}
	}
}
