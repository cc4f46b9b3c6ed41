package render

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// damaged is an interrupted task whose policy cannot be read.
func damaged(v *TaskView) {
	v.Status, v.Interrupted, v.FinishedAt, v.Policy = task.Pending, true, time.Time{}, task.Policy{}
	v.Damage = errors.New("policy: \x1b")
}

func TestDamageIsShown(t *testing.T) {
	for word, want := range map[string]string{
		"Status":  "INTERRUPTED (PENDING, its owner is dead, and it cannot go on): retry cancel 5b9a39db",
		"Damaged": `policy: \x1b`,
		"Policy":  "",
		"Command": "sh -c 'exit 7'",
	} {
		if got := fact(t, view(damaged), word); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	if got := fact(t, view(nil), "Damaged"); got != "" {
		t.Errorf("of a sound one: %q", got)
	}
	got := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{}, all(view(damaged)), Table{}, now) })
	if want := "5b9a39db  INTERRUPTED (damaged)  5         exit 7  -     1m   sh -c 'exit 7'"; got[1] != want {
		t.Errorf("listed as %q, want %q", got[1], want)
	}
}

func TestDamageAsJSON(t *testing.T) {
	for name, tt := range map[string]struct {
		change         func(*TaskView)
		policy, damage string
	}{
		"sound":         {nil, `{"name":"default"`, "null"},
		"of the policy": {damaged, "null", `"policy: \u001b"`},
		"of the rest":   {func(v *TaskView) { v.Damage = errors.New("options: x") }, `{"name":"default"`, `"options: x"`},
	} {
		var b strings.Builder
		if err := TaskJSON(&b, view(tt.change), nil); err != nil {
			t.Fatal(err)
		}
		var got struct{ Policy, Damage json.RawMessage }
		if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Fatal(err)
		}
		if policy := strings.Join(strings.Fields(string(got.Policy)), ""); !strings.HasPrefix(policy, tt.policy) || string(got.Damage) != tt.damage {
			t.Errorf("%s: policy %s, damage %s", name, policy, got.Damage)
		}
	}
}

// endless is longer than anybody reads, and its escapes are longer still.
var endless = strings.Repeat("\x1b", 100_000)

// endlessView has it wherever a text may stand.
func endlessView() (TaskView, task.Attempt) {
	a := task.Attempt{Number: 1, Decision: task.Decision{Verdict: task.Verdict(endless)}, Outcome: task.Outcome{
		Exit: 1, Signal: endless, Message: endless, Stdout: endless + "\n" + endless, Stderr: "",
	}}
	return view(func(v *TaskView) {
		v.ID, v.Name, v.Command, v.Directory, v.IdempotencyKey = endless, endless, []string{endless, endless}, endless, endless
		v.Environment, v.Reason, v.Damage, v.Last, v.Policy.Name = []string{endless}, task.Reason(endless), errors.New(endless), a, endless
		v.Options.OnRetry = endless
	}), a
}

// A line holds no more of a text than can be read. JSON has all of it.
func TestLinesAreNoLongerThanIsRead(t *testing.T) {
	v, a := endlessView()
	stats := []task.CommandStats{{Name: endless, Command: v.Command}}
	for name, draw := range map[string]func(*strings.Builder) error{
		"table": func(b *strings.Builder) error { return Tasks(b, Screen{}, all(v), Table{}, now) },
		"task":  func(b *strings.Builder) error { return Task(b, Screen{}, v, []task.Attempt{a}, now) },
		"stats": func(b *strings.Builder) error { return Stats(b, Screen{}, stats, 0, time.Time{}, now) },
		"run":   func(b *strings.Builder) error { NewLines(b, nil, nil, true).Ended(v.Task, a); return nil },
		"error": func(b *strings.Builder) error { b.WriteString(Message(errors.New(endless))); return nil },
	} {
		for _, line := range lines(t, draw) {
			if n := utf8.RuneCountInString(line); n > 4*longLine+100 {
				t.Errorf("%s: %d characters from %.20q", name, n, line)
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("%s: raw: %.40q", name, line)
			}
		}
	}
	var b strings.Builder
	if err := TaskJSON(&b, v, []task.Attempt{a}); err != nil || strings.Count(b.String(), `\u001b`) < 10*len(endless) {
		t.Errorf("the JSON has %d characters, %v", b.Len(), err)
	}
}

func TestBeginning(t *testing.T) {
	for _, tt := range []struct{ text, want string }{{"", ""}, {"äöü", "äöü"}, {"äöüx", "äöü…"}, {"\xff\xff\xff\xff", "\xff\xff\xff…"}} {
		if got := text.Shorten(tt.text, 3); got != tt.want {
			t.Errorf("%q: got %q", tt.text, got)
		}
	}
}

func TestABriefCommandShowsThatThereIsMore(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"a", "b c"}, "a 'b c'"}, {nil, ""},
		{[]string{strings.Repeat("x", 500), "y"}, strings.Repeat("x", 400) + "…"},
		{strings.Split(strings.Repeat("x ", 499)+"x", " "), strings.Repeat("x ", 200) + "…"},
		{append(make([]string, 399), "x", "y"), strings.Repeat("'' ", 133) + "'…"},
	} {
		if got := briefCommand(tt.argv); got != tt.want {
			t.Errorf("%.40q: got %q, want %q", tt.argv, got, tt.want)
		}
	}
}

// The least duration has no opposite.
func TestTheShortestDurationIsWritten(t *testing.T) {
	if got := text.Duration(math.MinInt64); got != "-106751d23h" {
		t.Errorf("got %q", got)
	}
	if got := relative(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), now); got != "106751d23h ago" {
		t.Errorf("got %q", got)
	}
}
