package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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

func seed(n uint64) *uint64 { return &n }

// everyOption has no field at its zero value.
func everyOption() task.Options {
	return task.Options{
		Stdin: task.StdinReplay, Output: task.OutputFinal, OutputLimit: math.MaxInt64, Capture: task.CaptureBoth,
		OnRetry: "echo retry", OnSuccess: "echo success", OnFailure: "echo failure", Seed: seed(math.MaxUint64),
	}
}

// read returns a task as each of the queries reads it.
func read(t tester, j *Journal, tk *task.Task) map[string]*task.Task {
	t.Helper()
	ctx := context.Background()
	list, err := j.List(ctx, state.Filter{Limit: 1})
	must(t, err)
	unfinished, err := j.Unfinished(ctx)
	must(t, err)
	adopted, err := j.Adopt(ctx, tk.Number)
	must(t, err)
	return map[string]*task.Task{
		"find": stored(t, j, tk.ID), "list": list[0], "unfinished": unfinished[len(unfinished)-1], "adopt": adopted,
	}
}

func TestOptionsComeBackUnchanged(t *testing.T) {
	tests := map[string]task.Options{"none": {}, "all": everyOption(), "a seed of 0": {Seed: seed(0)}}
	all := reflect.ValueOf(everyOption())
	for i := range all.NumField() { // each alone
		if all.Field(i).IsZero() {
			t.Fatalf("%s is not tried", all.Type().Field(i).Name)
		}
		var o task.Options
		reflect.ValueOf(&o).Elem().Field(i).Set(all.Field(i))
		tests[all.Type().Field(i).Name] = o
	}
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputSuccess, task.OutputFailure} {
		tests["output "+string(mode)] = task.Options{Output: mode}
	}
	tests["shell"] = task.Options{OnRetry: "printf '%s\\n' \"$RETRY_STATUS\" <&- | tee \t\"a&b\"\nexit 1", OnFailure: "\u2028\u202e\x1b\x7f"}
	j := open(t)
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			tk := newTask()
			tk.Options = options
			must(t, claimed(j, tk, epoch))
			for query, got := range read(t, j, tk) {
				if !reflect.DeepEqual(got.Options, options) {
					t.Errorf("%s: got %+v, want %+v", query, got.Options, options)
				}
			}
		})
	}
}

// A hook may name a file in another encoding, as the command itself may.
func TestEveryHookComesBackUnchanged(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		tk := newTask()
		tk.Options = task.Options{
			OnRetry: anyText().Draw(t, "on retry"), OnSuccess: anyText().Draw(t, "on success"), OnFailure: anyText().Draw(t, "on failure"),
		}
		must(t, claimed(j, tk, epoch))
		if got := stored(t, j, tk.ID).Options; got != tk.Options {
			t.Fatalf("got %#v\nwant %#v", got, tk.Options)
		}
	})
}

// A plain command, which most are, has none to write and to read.
func TestAPlainCommandHasNoOptions(t *testing.T) {
	j := open(t)
	inFlight(t, j)
	if n := count(t, j, "tasks WHERE options IS NULL"); n != 1 {
		t.Error("the options are not null")
	}
}

func count(t tester, j *Journal, from string) (n int) {
	t.Helper()
	must(t, j.row(context.Background(), "SELECT count(*) FROM "+from, nil, &n))
	return n
}

// A task whose options this retry cannot read is damaged: run without them it would be another task.
func TestUnreadableOptionsAreDamage(t *testing.T) {
	for _, text := range []string{"", "x", "[]", `{"seed": -1}`, `{"seed": 1.5}`, `{"output_limit": "2GiB"}`, `{"on_retry": 1}`} {
		j := open(t)
		tk := inFlight(t, j)
		_, err := rawExec(j, "UPDATE tasks SET options = ?", text)
		must(t, err)
		if damage := stored(t, j, tk.ID).Damage; damage == nil || !strings.HasPrefix(damage.Error(), "options: ") {
			t.Errorf("%q: got %v", text, damage)
		}
		if _, err := j.Adopt(t.Context(), tk.Number); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%q: adopted, %v", text, err)
		}
	}
}

// The seed decides about the phase in every process that runs the task, on whatever machine the journal lies.
func TestTheSeedsPhaseSurvivesAResume(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	tk, plain := newTask(), inFlight(t, j)
	tk.Options.Seed = seed(7)
	must(t, claimed(j, tk, epoch))
	want := tk.Options.Phase(0)
	if tk.History.Phase != want || plain.History.Phase == want {
		t.Errorf("the phases are %v with the seed and %v without, want %v", tk.History.Phase, plain.History.Phase, want)
	}
	other := openIn(t, dir)
	other.salt = j.salt + 1<<40
	for query, got := range read(t, other, tk) {
		if got.History.Phase != want {
			t.Errorf("%s: phase %v, want %v", query, got.History.Phase, want)
		}
	}
	apply(t, other, tk, recording(retryIn(0)), claiming(), recording(interrupted))
	adopted, err := other.Adopt(t.Context(), tk.Number)
	must(t, err)
	if adopted.History.Phase != want {
		t.Errorf("after two attempts: phase %v, want %v", adopted.History.Phase, want)
	}
}

func policyText(t testing.TB, attempts int) string {
	t.Helper()
	p := task.DefaultPolicy()
	p.Attempts = attempts
	text, err := p.MarshalJSON()
	must(t, err)
	return string(text)
}

func TestPolicyTexts(t *testing.T) {
	var c policyTexts
	for attempts := range 3 * mostTexts {
		for range 2 {
			if p, err := c.read(policyText(t, attempts)); err != nil || p.Attempts != attempts {
				t.Fatalf("%d attempts: %+v, %v", attempts, p, err)
			}
		}
		if len(c.known) > mostTexts {
			t.Fatalf("%d policies are remembered", len(c.known))
		}
	}
	for range 2 {
		if _, err := c.read(policyText(t, -1)); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("a negative limit: %v", err)
		}
	}
}

// A policy that cannot be read damages its own tasks, however many others were read before.
func TestPolicyTextsOfDamagedTasks(t *testing.T) {
	j := open(t)
	good, bad := newTask(), newTask()
	bad.ID = "another"
	must(t, claimed(j, good, epoch))
	must(t, claimed(j, bad, epoch))
	_, err := rawExec(j, fmt.Sprintf("UPDATE tasks SET policy = '{' WHERE number = %d", bad.Number))
	must(t, err)
	for range 2 {
		list, err := j.Unfinished(t.Context())
		must(t, err)
		if list[0].Damage != nil || list[1].Damage == nil || list[1].Policy.Attempts != 0 {
			t.Errorf("%v, %v", list[0].Damage, list[1].Damage)
		}
	}
}
