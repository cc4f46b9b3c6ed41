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
	}{{text: "FAILED", want: "FAILED"}, {text: "in_flight", want: "IN_FLIGHT"}, {text: " Interrupted ", want: interrupted},
		{text: "gave-up", want: "EXHAUSTED"}, {text: "gave up", want: "EXHAUSTED"}, {text: "fail", want: unsuccessful},
		{text: "running", want: running}, {text: "waiting", want: waiting}} {
		var s wantedStatus
		if err := s.UnmarshalText([]byte(tt.text)); err != nil || s != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.text, s, err, tt.want)
		}
	}
	for _, text := range []string{"", "failing", "dead", "*"} {
		var s wantedStatus
		err := s.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), ""+
			"\nhint: give running, waiting, interrupted, succeeded, gave-up, failed, cancelled or fail") {
			t.Errorf("%q: got %v, want an error that lists the statuses", text, err)
		}
	}
}

// INTERRUPTED is not a stored status: the query reads all unfinished tasks, and the filter keeps those without an
// owner.
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
		{name: "no filter", view: view(task.Failed, false), want: true},
		{name: "it", wanted: []wantedStatus{"FAILED"}, view: view(task.Failed, false), want: true},
		{name: "another", wanted: []wantedStatus{"FAILED"}, view: view(task.Pending, true)},
		{name: "interrupted", wanted: []wantedStatus{interrupted}, view: view(task.Pending, true), want: true},
		{name: "not interrupted", wanted: []wantedStatus{interrupted}, view: view(task.InFlight, false)},
		{name: "either", wanted: []wantedStatus{interrupted, "FAILED"}, view: view(task.Failed, false), want: true},
		{name: "running", wanted: []wantedStatus{running}, view: view(task.InFlight, false), want: true},
		{name: "running no more", wanted: []wantedStatus{running}, view: view(task.InFlight, true)},
		{name: "fail", wanted: []wantedStatus{unsuccessful}, view: view(task.Exhausted, false), want: true},
		{name: "no failure", wanted: []wantedStatus{unsuccessful}, view: view(task.Cancelled, false)},
		{
			name: "the stored status of one that is interrupted", wanted: []wantedStatus{"IN_FLIGHT"},
			view: view(task.InFlight, true), want: true,
		},
	}
	for _, tt := range tests {
		flags := filterFlags{Status: tt.wanted}
		if got := flags.passes(tt.view); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		stored := flags.stored(7)
		if asks := len(tt.wanted) == 0 || len(stored.Statuses) > 0; !asks ||
			(stored.Limit == 0) != (len(tt.wanted) > 0 && (tt.wanted[0] == interrupted || tt.wanted[0] == running)) {
			t.Errorf("%s: got the query %+v", tt.name, stored)
		}
	}
}
