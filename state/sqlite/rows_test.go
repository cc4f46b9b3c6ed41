package sqlite

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// spoil changes the rows of one task, whatever the tables would say to it.
func spoil(t *testing.T, j *Journal, tk *task.Task, set string) {
	t.Helper()
	_, err := rawExec(j, "UPDATE tasks SET "+set+" WHERE number = ?", tk.Number)
	must(t, err)
}

// What cannot be read of a task is said of it, and nobody goes on with it; the others are read and adopted as ever.
func TestDamageStaysWithItsTask(t *testing.T) {
	for set, want := range map[string]string{
		"policy = '{'":                                 "policy: unexpected end",
		`policy = '{"backoff": "tea:1s"}'`:             "policy: policy",
		`policy = json_set(policy, '$.attempts', -1)`:  "policy: a limit is negative",
		`policy = json_set(policy, '$.budget_ms', -1)`: "policy: a limit is negative",
		"options = '[]'":                               "options: array where another",
		"argv = x''":                                   "argv: it names no command",
		"attempt_count = -5":                           "attempt_count: -5",
		"attempt_count = 9223372036854775807":          "attempt_count: 9223372036854775807, and the latest attempt is 1",
		"requeued_after = 2":                           "requeued_after: 2 of 1 attempts",
	} {
		t.Run(set, func(t *testing.T) {
			j := open(t)
			damaged, sound := inFlight(t, j), inFlight(t, j)
			must(t, errors.Join(j.Release(damaged.Number), j.Release(sound.Number)))
			spoil(t, j, damaged, set)
			list, err := j.List(t.Context(), state.Filter{})
			must(t, err)
			if len(list) != 2 || list[0].Damage != nil || list[1].Damage == nil || !strings.HasPrefix(list[1].Damage.Error(), want) {
				t.Fatalf("listed %+v, want %q of the second", list, want)
			}
			if list[1].ID != damaged.ID || list[1].Directory != damaged.Directory || list[1].Status != task.InFlight {
				t.Errorf("of the damaged one remains %s", showTask(list[1]))
			}
			checkSetApart(t, j, damaged)
			if got, err := j.Adopt(t.Context(), sound.Number); err != nil || got.ID != sound.ID {
				t.Errorf("the sound one: %v", err)
			}
		})
	}
}

// checkSetApart asserts that nobody can adopt a task, and that it can be cancelled and pruned.
func checkSetApart(t *testing.T, j *Journal, tk *task.Task) {
	t.Helper()
	if got, err := j.Adopt(t.Context(), tk.Number); got != nil || !errors.Is(err, state.ErrDamaged) {
		t.Errorf("adopted %v, %v", got, err)
	}
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	if err := j.Requeue(t.Context(), stored(t, j, tk.ID), epoch); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("requeued: %v", err)
	}
	if n, _, err := j.Prune(t.Context(), state.Retention{Rows: 100}); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
}

// With a count that is not the number of the latest attempt, the next claim would meet one that is there, or leave some out.
func TestACountThatIsNotTheLatestAttemptIsDamage(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	must(t, claimed(j, tk, epoch))
	for count, want := range map[string]bool{"0": true, "1": true, "2": false, "3": true} {
		spoil(t, j, tk, "attempt_count = "+count)
		if got := stored(t, j, tk.ID).Damage; (got != nil) != want {
			t.Errorf("%s of 2: %v", count, got)
		}
	}
}

// Flags are 0 or not: none is damage.
func TestFlagsAreReadAsNumbers(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	spoil(t, j, tk, "once = 5")
	_, err := rawExec(j, "UPDATE attempts SET shortened = -7")
	must(t, err)
	got := stored(t, j, tk.ID)
	if !got.Once || !got.Last.Decision.Shortened || got.Damage != nil {
		t.Errorf("got %s, %s, %v", showTask(got), showAttempt(got.Last), got.Damage)
	}
	if list := attempts(t, j, tk.Number); len(list) != 1 || !list[0].Decision.Shortened {
		t.Errorf("got %+v", list)
	}
}

// No number in a journal makes a report fail, or anything that is reckoned with it overflow.
func TestAbsurdNumbersAreReadAsLimits(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1e16, -1, 0, 3e16, math.MaxInt64} {
		t.Run(strconv.FormatInt(n, 10), func(t *testing.T) {
			j := open(t)
			ended(t, j, exhausted, 3, epoch, running("nightly", "x"))
			must(t, j.Release(waiting(t, j).Number))
			for _, set := range []string{
				"tasks SET created_at = ?1, finished_at = ?2, requeued_at = ?1, next_attempt_at = ?1, once = ?1, attempt_count = ?1",
				"tasks SET requeued_at = NULL", "attempts SET started_at = ?1, duration = ?2, delay = ?1, exit = ?1",
			} {
				values := strings.NewReplacer("?1", strconv.FormatInt(n, 10), "?2", strconv.FormatInt(^n, 10)) // ^n lies at the other end
				_, err := rawExec(j, "UPDATE "+values.Replace(set))
				must(t, err)
				checkReports(t, j)
			}
		})
	}
}

// checkReports asserts that all of a journal can be read, and that what comes of it can be added up.
func checkReports(t *testing.T, j *Journal) {
	t.Helper()
	list, err := j.List(t.Context(), state.Filter{})
	must(t, err)
	for _, tk := range list {
		checkTime(t, tk.CreatedAt, tk.RequeuedAt, tk.FinishedAt, tk.NextAttemptAt)
		for _, a := range attempts(t, j, tk.Number) {
			checkTime(t, a.StartedAt)
			checkSpan(t, a.Outcome.Duration)
			checkSpan(t, a.Decision.Delay)
		}
	}
	stats, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	for _, s := range stats {
		checkSpan(t, s.P95)
	}
	f, err := j.Figures(t.Context())
	must(t, err)
	checkSpan(t, f.Waiting)
	_, err = j.Prunable(t.Context(), state.Retention{})
	must(t, err)
}

func checkTime(t *testing.T, times ...time.Time) {
	t.Helper()
	for _, at := range times {
		if y := at.UTC().Year(); !at.IsZero() && (y < 1900 || y > 10000) {
			t.Errorf("a time in the year %d", y)
		}
	}
}

func checkSpan(t *testing.T, d time.Duration) {
	t.Helper()
	if d < 0 || d > 36_525*24*time.Hour {
		t.Errorf("a duration of %d ns", d)
	}
}

// SQLite's own sum is an error where it overflows: many delays that are each possible would be enough.
func TestSumsOfDelaysDoNotOverflow(t *testing.T) {
	j := open(t)
	ended(t, j, exhausted, 4, epoch, nil)
	_, err := rawExec(j, "UPDATE attempts SET delay = ?", int64(math.MaxInt64))
	must(t, err)
	checkReports(t, j)
}

func TestPlusEndsAtTheLongest(t *testing.T) {
	for _, tt := range [][3]time.Duration{{1, 2, 3}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64 - 1, 1, math.MaxInt64}} {
		if got := plus(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%d + %d: got %d", tt[0], tt[1], got)
		}
	}
}
