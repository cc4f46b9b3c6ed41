package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// minutes is a time so long after the epoch.
func minutes(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// showLast writes the ends in minutes.
func showLast(l task.LastRuns) string {
	minute := func(at time.Time) int { return int(at.Sub(epoch.Truncate(time.Microsecond)).Minutes()) }
	text := "never"
	if l.Status != "" {
		text = fmt.Sprintf("%s at %d, exit %d", l.Status, minute(l.FinishedAt), l.Outcome.Exit)
	}
	if !l.SucceededAt.IsZero() {
		text += fmt.Sprintf(", success at %d", minute(l.SucceededAt))
	}
	return text
}

func TestStatsKnowTheLastRuns(t *testing.T) {
	tests := map[string]struct {
		tasks func(j *Journal)
		want  string
	}{
		"mended": {func(j *Journal) {
			ended(t, j, failed, 1, minutes(1), nil)
			ended(t, j, succeeded, 2, minutes(2), nil)
		}, "SUCCEEDED at 2, exit 1, success at 2"}, // ended tells every attempt to exit 1
		"broken": {func(j *Journal) {
			ended(t, j, succeeded, 1, minutes(1), nil)
			ended(t, j, exhausted, 3, minutes(3), nil)
			ended(t, j, cancelled, 1, minutes(4), nil)
		}, "EXHAUSTED at 3, exit 1, success at 1"},
		"made later, ended earlier": {func(j *Journal) {
			ended(t, j, failed, 1, minutes(9), nil)
			ended(t, j, succeeded, 1, minutes(5), nil)
		}, "FAILED at 9, exit 1, success at 5"},
		"two at the same time": {func(j *Journal) {
			ended(t, j, succeeded, 1, minutes(1), nil)
			ended(t, j, failed, 1, minutes(1), nil)
		}, "FAILED at 1, exit 1, success at 1"},
		"the last attempt counts": {func(j *Journal) {
			tk := waiting(t, j)
			must(t, claimed(j, tk, epoch))
			must(t, recorded(j, tk, exit(75), failed, minutes(2)))
			must(t, j.Release(tk.Number))
		}, "FAILED at 2, exit 75"},
		"interrupted": {func(j *Journal) { must(t, j.Release(inFlight(t, j).Number)) }, "never"},
		"cancelled":   {func(j *Journal) { ended(t, j, cancelled, 1, minutes(4), nil) }, "never"},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			j := open(t)
			test.tasks(j)
			list, _, err := j.Stats(t.Context(), time.Time{}, 0)
			must(t, err)
			if got := showLast(list[0].Last); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// What is broken now comes first, and no more is looked at than asked for.
func TestStatsBeginWithWhatIsBroken(t *testing.T) {
	j := open(t)
	for i := range 3 {
		ended(t, j, failed, 1, minutes(i), running("", "mended"))
	}
	ended(t, j, succeeded, 1, minutes(9), running("", "mended"))
	ended(t, j, failed, 1, minutes(1), running("", "broken"))
	for range 2 {
		ended(t, j, exhausted, 1, minutes(1), running("", "more broken"))
	}
	ended(t, j, succeeded, 1, minutes(1), running("", "sound"))
	order := []string{"more broken", "broken", "mended", "sound"}
	for limit := range 6 {
		list, all, err := j.Stats(t.Context(), time.Time{}, limit)
		must(t, err)
		var got []string
		for _, s := range list {
			got = append(got, strings.Join(s.Command, " "))
		}
		want := order
		if limit > 0 {
			want = order[:min(limit, len(order))]
		}
		if !slices.Equal(got, want) || all != len(order) {
			t.Errorf("limit %d: %q of %d, want %q", limit, got, all, want)
		}
	}
}

// The last attempts of a few tasks are found in a journal of a million.
func TestLastAttemptsAreFoundByTheirKey(t *testing.T) {
	for _, step := range planOf(t, open(t), selectLast, "[1]") {
		if strings.HasPrefix(step, "SCAN") && !strings.HasPrefix(step, "SCAN n ") {
			t.Error(step)
		}
	}
}
