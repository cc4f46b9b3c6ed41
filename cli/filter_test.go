package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
)

func TestParsePast(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 1, 12, 30, 15, 0, zone)
	day := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, zone)
	}
	tests := []struct {
		text string
		want time.Time
	}{
		{"2h", now.Add(-2 * time.Hour)},
		{"3d", now.Add(-72 * time.Hour)},
		{"90", now.Add(-90 * time.Second)},
		{"0s", now},
		{"12:30", day(3, 1, 12, 30)},
		{"12:31", day(2, 28, 12, 31)}, // today it has not been yet
		{"00:00", day(3, 1, 0, 0)},
		{"23:59", day(2, 28, 23, 59)},
		{"2026-02-03", day(2, 3, 0, 0)},
		{"2026-02-03 04:05", day(2, 3, 4, 5)},
		{"2026-02-03T04:05", day(2, 3, 4, 5)},
		{"2026-02-03 04:05:06", day(2, 3, 4, 5).Add(6 * time.Second)},
		{"2026-02-03T04:05:00Z", day(2, 3, 5, 5)},
	}
	for _, tt := range tests {
		if got, err := parseSince(tt.text, now); err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"", "-2h", "yesterday", "25:00", "2026-13-01", "12:30:", "2h ago"} {
		if got, err := parseSince(text, now); err == nil || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParsePast(f *testing.F) {
	for _, seed := range []string{"2h", "15:04", "2026-01-31", "2026-01-31T15:04:05+01:00", "1e9d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseSince(text, time.Now()); err != nil && !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestWantedStatus(t *testing.T) {
	for text, want := range map[string]wantedStatus{"FAILED": "FAILED", "in_flight": "IN_FLIGHT", " Interrupted ": interrupted} {
		var s wantedStatus
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "FAIL", "IN FLIGHT", "*"} {
		var s wantedStatus
		err := s.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "\nhint: give PENDING, IN_FLIGHT, INTERRUPTED, SUCCEEDED, EXHAUSTED, FAILED, CANCELLED") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// INTERRUPTED is stored nowhere: it takes the unfinished tasks, and those without an owner of them.
func TestFilterPasses(t *testing.T) {
	view := func(s runner.Status, interrupted bool) render.TaskView {
		return render.TaskView{Task: &runner.Task{Status: s}, Interrupted: interrupted}
	}
	tests := []struct {
		name   string
		wanted []wantedStatus
		view   render.TaskView
		want   bool
	}{
		{"no filter", nil, view(runner.Failed, false), true},
		{"it", []wantedStatus{"FAILED"}, view(runner.Failed, false), true},
		{"another", []wantedStatus{"FAILED"}, view(runner.Pending, true), false},
		{"interrupted", []wantedStatus{interrupted}, view(runner.Pending, true), true},
		{"not interrupted", []wantedStatus{interrupted}, view(runner.InFlight, false), false},
		{"either", []wantedStatus{interrupted, "FAILED"}, view(runner.Failed, false), true},
		{"the stored status of one that is interrupted", []wantedStatus{"IN_FLIGHT"}, view(runner.InFlight, true), true},
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
