package sqlite

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestAdoptReturnsTheTaskAsItStands(t *testing.T) {
	tests := map[string][]write{
		"in its first attempt":  {claiming()},
		"waiting":               {claiming(), recording(retryIn(time.Minute))},
		"in its second attempt": {claiming(), recording(retryIn(time.Minute)), claiming()},
		"told to stop":          {claiming(), recording(retryIn(time.Minute)), settling(interrupted)},
		"stopped in an attempt": {claiming(), recording(interrupted)},
	}
	for name, writes := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := newTask()
			apply(t, j, tk, writes...)
			must(t, j.Release(tk.Number))
			got, err := j.Adopt(t.Context(), tk.Number)
			must(t, err)
			if g, w := showTask(got), showTask(tk); g != w {
				t.Errorf("adopted\n%s\nwant\n%s", g, w)
			}
			if got.Last.Number != got.AttemptCount || (got.Last.Decision.Verdict == "") != (got.Status == task.InFlight) {
				t.Errorf("%s, its last attempt %s", got.Status, showAttempt(got.Last))
			}
		})
	}
}

// An adopted task goes on as one that never stopped: crash, claim, end.
func TestAnAdoptedTaskGoesOn(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	got, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	must(t, recorded(j, got, task.Crashed(), interrupted, epoch.Add(time.Hour)))
	apply(t, j, got, claiming(), recording(succeeded))
	if end := stored(t, j, tk.ID); end.Status != task.Succeeded || end.AttemptCount != 2 || end.IdempotencyKey != tk.IdempotencyKey {
		t.Errorf("ended as %s", showTask(end))
	}
	if _, err := j.Adopt(t.Context(), tk.Number); !errors.Is(err, state.ErrFinished) {
		t.Errorf("adopted again: %v", err)
	}
}

// The history that is gathered from the attempts is the one that was lived through.
func TestAdoptGathersTheHistory(t *testing.T) {
	j := open(t)
	policy := parsePolicy(t, "exp:1s", "phase")
	policy.Consecutive, policy.ResetAfter = 3, time.Minute
	rapid.Check(t, func(t *rapid.T) {
		tk := newTask()
		tk.Policy = policy
		must(t, claimed(j, tk, epoch))
		for range rapid.IntRange(0, 8).Draw(t, "attempts") {
			o := task.Outcome{
				Exit:     rapid.SampledFrom([]int{0, 1, 75, task.NoExit}).Draw(t, "exit"),
				Duration: time.Duration(rapid.Int64Range(0, 2*time.Minute.Microseconds()).Draw(t, "duration")) * time.Microsecond,
			}
			d := interrupted
			if o.IsCrash() {
				o = task.Crashed()
			} else if rapid.Bool().Draw(t, "retry") {
				d = retryIn(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "delay")) * time.Microsecond)
				d.Shortened = rapid.Bool().Draw(t, "shortened")
			}
			must(t, recorded(j, tk, o, d, epoch))
			if rapid.Bool().Draw(t, "told to stop") {
				must(t, settled(j, tk, interrupted, epoch))
			}
			must(t, claimed(j, tk, epoch))
		}
		got, err := j.Adopt(t.Context(), tk.Number)
		must(t, err)
		want := tk.History
		want.Began = got.History.Began // compared to the microsecond elsewhere
		if got.History != want {
			t.Fatalf("gathered %+v\nlived    %+v", got.History, want)
		}
	})
}
