package state

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/runner"
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
			task := newTask()
			apply(t, j, task, writes...)
			must(t, j.Release(task.Number))
			got, err := j.Adopt(t.Context(), task.Number)
			must(t, err)
			if g, w := showTask(got), showTask(task); g != w {
				t.Errorf("adopted\n%s\nwant\n%s", g, w)
			}
			if got.Last.Number != got.AttemptCount || (got.Last.Decision.Verdict == "") != (got.Status == runner.InFlight) {
				t.Errorf("%s, its last attempt %s", got.Status, showAttempt(got.Last))
			}
		})
	}
}

// An adopted task goes on as one that never stopped: crash, claim, end.
func TestAnAdoptedTaskGoesOn(t *testing.T) {
	j := open(t)
	task := inFlight(t, j)
	got, err := j.Adopt(t.Context(), task.Number)
	must(t, err)
	must(t, recorded(j, got, runner.Crashed(), interrupted, epoch.Add(time.Hour)))
	apply(t, j, got, claiming(), recording(succeeded))
	if end := stored(t, j, task.ID); end.Status != runner.Succeeded || end.AttemptCount != 2 || end.IdempotencyKey != task.IdempotencyKey {
		t.Errorf("ended as %s", showTask(end))
	}
	if _, err := j.Adopt(t.Context(), task.Number); !errors.Is(err, ErrFinished) {
		t.Errorf("adopted again: %v", err)
	}
}

// The history that is gathered from the attempts is the one that was lived through.
func TestAdoptGathersTheHistory(t *testing.T) {
	j := open(t)
	policy := parsePolicy(t, "exp:1s", "phase")
	policy.Consecutive, policy.ResetAfter = 3, time.Minute
	rapid.Check(t, func(t *rapid.T) {
		task := newTask()
		task.Policy = policy
		must(t, claimed(j, task, epoch))
		for range rapid.IntRange(0, 8).Draw(t, "attempts") {
			o := runner.Outcome{
				Exit:     rapid.SampledFrom([]int{0, 1, 75, runner.NoExit}).Draw(t, "exit"),
				Duration: time.Duration(rapid.Int64Range(0, 2*time.Minute.Microseconds()).Draw(t, "duration")) * time.Microsecond,
			}
			d := interrupted
			if o.IsCrash() {
				o = runner.Crashed()
			} else if rapid.Bool().Draw(t, "retry") {
				d = retryIn(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "delay")) * time.Microsecond)
				d.Shortened = rapid.Bool().Draw(t, "shortened")
			}
			must(t, recorded(j, task, o, d, epoch))
			if rapid.Bool().Draw(t, "told to stop") {
				must(t, settled(j, task, interrupted, epoch))
			}
			must(t, claimed(j, task, epoch))
		}
		got, err := j.Adopt(t.Context(), task.Number)
		must(t, err)
		want := task.History
		want.Began = got.History.Began // compared to the microsecond elsewhere
		if got.History != want {
			t.Fatalf("gathered %+v\nlived    %+v", got.History, want)
		}
	})
}
