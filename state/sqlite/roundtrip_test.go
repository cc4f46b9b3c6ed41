package sqlite

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestArgvComesBackUnchanged(t *testing.T) {
	tests := map[string][]string{
		"none":              nil,
		"one":               {"true"},
		"empty strings":     {"", "", "printf", "", "%s\n", ""},
		"one empty string":  {""},
		"two empty strings": {"", ""},
		"white space":       {"sh", "-c", "echo 'a\tb'\nexit 1\n", " ", "\n"},
		"invalid UTF-8":     {"\xff", "a\xc3", "\xed\xa0\x80", "\xf0\x9f"},
		"control and bidi":  {"\x1b[2J", "\x01\x7f", "\u202e", "'\"\\$`"},
		"long":              {strings.Repeat("x", 1<<20)},
		"many":              slices.Repeat([]string{"", "x"}, 10_000),
	}
	j := open(t)
	for name, argv := range tests {
		t.Run(name, func(t *testing.T) {
			tk := newTask()
			tk.Command = argv
			must(t, claimed(j, tk, epoch))
			if got := stored(t, j, tk.ID).Command; !slices.Equal(got, argv) {
				t.Errorf("got %d arguments %.200q", len(got), got)
			}
		})
	}
}

// Any byte but NUL, which no argument and no path can hold.
func anyText() *rapid.Generator[string] {
	bytes := rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) })
	return rapid.OneOf(rapid.StringMatching(`[^\x00]*`), bytes)
}

func TestEveryTextComesBackUnchanged(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		tk := newTask()
		tk.Command = rapid.SliceOf(anyText()).Draw(t, "argv")
		tk.Name = anyText().Draw(t, "name")
		tk.Environment = rapid.SliceOf(anyText()).Draw(t, "environment")
		tk.Directory = anyText().Draw(t, "directory")
		tk.IdempotencyKey = anyText().Draw(t, "key")
		outcome := task.Outcome{Exit: 1, Message: anyText().Draw(t, "message"), Signal: anyText().Draw(t, "signal")}
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, outcome, succeeded, epoch)) // another may have the name
		got := stored(t, j, tk.ID)
		if g, w := show(got, attempts(t, j, got.Number)), show(tk, []task.Attempt{tk.Last}); g != w {
			t.Fatalf("stored\n%s\nwant\n%s", g, w)
		}
	})
}

// Times are kept to the microsecond, durations too, far into the past and the future.
func TestTimesComeBackToTheMicrosecond(t *testing.T) {
	j := open(t)
	for _, at := range []time.Time{
		time.Unix(0, 1000), time.Unix(-1, 999_999_999), epoch, epoch.In(time.FixedZone("", 5*3600)),
		time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	} {
		tk := newTask()
		tk.CreatedAt = at
		must(t, claimed(j, tk, at))
		must(t, recorded(j, tk, task.Outcome{Exit: 1, Duration: 1_234_567 * time.Nanosecond}, retryIn(time.Second), at))
		got := stored(t, j, tk.ID)
		for name, pair := range map[string][2]time.Time{
			"created": {got.CreatedAt, at}, "history": {got.History.Began, at}, "started": {got.Last.StartedAt, at},
			"next": {got.NextAttemptAt, at.Add(time.Second)},
		} {
			if late := pair[1].Sub(pair[0]); late < 0 || late >= time.Microsecond {
				t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
			}
		}
		if d := got.Last.Outcome.Duration; d != 1234*time.Microsecond {
			t.Errorf("the attempt took %v", d)
		}
	}
}

// The policy that is read back decides as the one that was written.
func TestPolicyComesBackUnchanged(t *testing.T) {
	policies := map[string]task.Policy{"zero limits": {Name: "zero", Backoff: parsePolicy(t, "constant:0", "none").Backoff}}
	for _, p := range backoff.Presets() {
		policy, err := task.BuiltinPolicy(p.Name)
		must(t, err)
		policies[p.Name] = policy
	}
	for _, spec := range [][2]string{
		{"exp:1s*1.5..30s", ""}, {"linear:5s+2s..1m", "full"}, {"fib:1s", "equal"}, {"poly:15s+n^2.5..1h", "decorrelated"},
		{"list:1s,0s,1h30m", "30%"}, {"constant:5m", "add:1s..5s"}, {"exp:100ms", "add:30s*n"}, {"buckets:3", ""}, {"constant:90d", "phase"},
	} {
		policies[spec[0]+" "+spec[1]] = parsePolicy(t, spec[0], spec[1])
	}
	full := parsePolicy(t, "exp:2s..2m", "phase")
	full.Attempts, full.Timeout, full.KillAfter, full.Budget = 0, 1500*time.Millisecond, time.Millisecond, 30*24*time.Hour
	full.ResetAfter, full.Consecutive = time.Hour, 3
	full.RetryOn, full.StopOn, full.SuccessOn = conditions(t, "1,75", "100-120"), conditions(t, "SIGSEGV"), conditions(t, "0", "timeout")
	policies["every field"] = full

	j := open(t)
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			tk := newTask()
			tk.Policy = policy
			must(t, claimed(j, tk, epoch))
			samePolicy(t, stored(t, j, tk.ID).Policy, policy)
		})
	}
}

func conditions(t *testing.T, texts ...string) []task.Condition {
	t.Helper()
	list, err := task.ParseConditions(texts)
	must(t, err)
	return list
}

func samePolicy(t *testing.T, got, want task.Policy) {
	t.Helper()
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	chance := backoff.Chance{Phase: 0.25, Rand: func() float64 { return 0.75 }}
	for n := 1; n <= 30; n++ {
		if g, w := got.Backoff.Delay(n, chance), want.Backoff.Delay(n, chance); g != w {
			t.Errorf("the delay before retry %d is %v, was %v", n, g, w)
		}
	}
	for _, o := range []task.Outcome{exit(0), exit(1), exit(75), exit(110), {Exit: 139, Signal: "SIGSEGV"}, {Exit: 143, Error: task.ErrorTimeout}} {
		e := task.Evidence{Outcome: o}
		g, _ := got.Classify(e)
		if w, _ := want.Classify(e); g != w {
			t.Errorf("%+v is of class %v, was %v", o, g, w)
		}
	}
	// Conditions hold functions, which have no equality; what they match was compared above.
	for _, p := range []*task.Policy{&got, &want} {
		p.Backoff, p.RetryOn, p.StopOn, p.SuccessOn = backoff.Spec{}, nil, nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func asJSON(t *testing.T, p task.Policy) string {
	t.Helper()
	data, err := json.Marshal(p)
	must(t, err)
	return string(data)
}

func TestListAndCount(t *testing.T) {
	j := open(t)
	var newest []string
	for range 5 {
		newest = slices.Insert(newest, 0, inFlight(t, j).ID)
	}
	for limit, want := range map[int][]string{0: newest, 1: newest[:1], 3: newest[:3], 5: newest, 99: newest} {
		tasks, err := j.List(t.Context(), state.Filter{Limit: limit})
		must(t, err)
		var got []string
		for _, tk := range tasks {
			got = append(got, tk.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("List(%d): got %q, want %q", limit, got, want)
		}
	}
	if n, err := j.Count(t.Context()); n != 5 || err != nil {
		t.Errorf("Count: %d, %v", n, err)
	}
}
