package sqlite

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

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
