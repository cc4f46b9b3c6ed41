package render

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/10f93571/retry/task"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

func view(change func(*TaskView)) TaskView {
	t := TaskView{Task: &task.Task{
		ID: "01a1fb79-5735-7565-b3a1-977a5b9a39db", Kind: task.KindCommand, Command: []string{"sh", "-c", "exit 7"},
		Directory: "/srv", Policy: task.DefaultPolicy(), IdempotencyKey: "key", CreatedAt: now.Add(-time.Minute),
		Status: task.Exhausted, Reason: task.ReasonAttempts, AttemptCount: 5, FinishedAt: now,
		Last: task.Attempt{Number: 5, Outcome: task.Outcome{Exit: 7},
			Decision: task.Decision{Verdict: task.VerdictExhausted}},
	}}
	if change != nil {
		change(&t)
	}
	return t
}

// all yields views as the journal does.
func all(views ...TaskView) iter.Seq2[TaskView, error] {
	return func(yield func(TaskView, error) bool) {
		for _, v := range views {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func lines(t *testing.T, draw func(*strings.Builder) error) []string {
	t.Helper()
	var b strings.Builder
	if err := draw(&b); err != nil {
		t.Fatal(err)
	}
	return linesOf(b.String())
}

func linesOf(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func TestTasks(t *testing.T) {
	waiting := func(v *TaskView) {
		v.Status, v.Reason, v.AttemptCount, v.NextAttemptAt, v.Policy.Attempts = task.Pending, "", 1,
			now.Add(90*time.Second), 0
	}
	running := func(v *TaskView) {
		v.Status, v.Last = task.InFlight, task.Attempt{Number: 5, Outcome: task.Outcome{Exit: task.NoExit}}
	}
	tasks := []TaskView{
		view(nil), view(waiting), view(running),
		view(func(v *TaskView) { waiting(v); v.Interrupted = true }),
		view(func(v *TaskView) { running(v); v.Interrupted = true }),
		view(func(v *TaskView) { v.Last.Outcome.Signal = "SIGKILL"; v.Command = []string{"a\nb"} }),
		view(func(v *TaskView) { v.Name, v.CreatedAt = "nightly\x1b", now.Add(time.Hour) }), // made before the clock went back
		view(nil), // one too many
	}
	got := lines(t, func(b *strings.Builder) error {
		return Tasks(b, Screen{}, all(tasks...), Table{Limit: 7, More: "… and older ones"}, now)
	})
	want := []string{
		"ID        STATUS       TRY  LAST        NEXT      AGE  COMMAND",
		"5b9a39db  gave up      5/5  exit 7      -         1m   sh -c 'exit 7'",
		"5b9a39db  waiting      1    exit 7      in 1m30s  1m   sh -c 'exit 7'",
		"5b9a39db  running      5/5  running     -         1m   sh -c 'exit 7'",
		"5b9a39db  interrupted  1    exit 7      -         1m   sh -c 'exit 7'",
		"5b9a39db  interrupted  5/5  no outcome  -         1m   sh -c 'exit 7'",
		`5b9a39db  gave up      5/5  SIGKILL     -         1m   $'a\nb'`,
		`5b9a39db  gave up      5/5  exit 7      -         0s   nightly\x1b: sh -c 'exit 7'`,
		"… and older ones",
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// On a terminal no line is wider than it, so that none wraps.
func TestTasksFitTheScreen(t *testing.T) {
	long := view(func(v *TaskView) { v.Command = []string{"echo", strings.Repeat("日本", 100)} })
	for _, line := range lines(t, func(b *strings.Builder) error {
		return Tasks(b, Screen{Width: 60}, all(long), Table{},
			now)
	}) {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("got %d characters: %s", n, line)
		}
	}
	piped := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{}, all(long), Table{}, now) })
	if !strings.HasSuffix(piped[1], strings.Repeat("日本", 100)+"'") {
		t.Errorf("got a line that is cut in a pipe: %s", piped[1])
	}
}

// On a narrow terminal columns give way, until the command can be read. None is empty for all.
func TestTaskColumns(t *testing.T) {
	waiting := view(func(v *TaskView) {
		v.Status, v.FinishedAt, v.NextAttemptAt = task.Pending, time.Time{}, now.Add(90*time.Second)
		v.Command = []string{"./backup.sh", "--to", "s3://backups/nightly", "--compress"}
	})
	for width, want := range map[int]string{
		0: "ID STATUS TRY LAST NEXT AGE COMMAND", 200: "ID STATUS TRY LAST NEXT AGE COMMAND",
		120: "ID STATUS TRY LAST NEXT AGE COMMAND", 80: "ID STATUS TRY LAST NEXT AGE COMMAND",
		60: "ID STATUS TRY AGE COMMAND", 50: "ID STATUS AGE COMMAND", 30: "ID STATUS COMMAND",
	} {
		got := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{Width: width}, all(waiting), Table{}, now) })
		if got := strings.Join(strings.Fields(got[0]), " "); got != want {
			t.Errorf("%d columns: got %s, want %s", width, got, want)
		}
	}
	got := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{}, all(view(nil)), Table{}, now) })
	if want := "ID STATUS TRY LAST AGE COMMAND"; strings.Join(strings.Fields(got[0]), " ") != want {
		t.Errorf("nothing waits: got %s, want %s", got[0], want)
	}
}

// Rows after the first page have the columns of those before.
func TestLongTables(t *testing.T) {
	many := func(yield func(TaskView, error) bool) {
		for range 2*pageRows + 1 {
			if !yield(view(nil), nil) {
				return
			}
		}
		yield(TaskView{}, errors.New("the end"))
	}
	var b strings.Builder
	err := Tasks(&b, Screen{}, many, Table{}, now)
	got := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if err == nil || len(got) != 2*pageRows+2 || got[1] != got[2*pageRows+1] {
		t.Errorf("got %d lines, the last one %q, and %v, want one as the first row, and the error", len(got),
			got[len(got)-1], err)
	}
	b.Reset()
	if err := Tasks(&b, Screen{}, many, Table{Limit: pageRows + 1, More: "more"}, now); err != nil ||
		strings.Count(b.String(), "\n") != pageRows+3 || !strings.HasSuffix(b.String(), "\nmore\n") {
		t.Errorf("got %d lines and %v, want %d, the last one that there are more", strings.Count(b.String(), "\n"), err,
			pageRows+3)
	}
}

func TestColor(t *testing.T) {
	colored := lines(t, func(b *strings.Builder) error {
		return Tasks(b, Screen{Width: 99, Color: true}, all(view(nil)), Table{}, now)
	})
	if !strings.Contains(colored[1], "\x1b[31mgave up\x1b[") {
		t.Errorf("got no red in %q", colored[1])
	}
	plain := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{Width: 99}, all(view(nil)), Table{}, now) })
	if strings.Contains(plain[1], "\x1b") {
		t.Errorf("got an escape in %q", plain[1])
	}
}

// damaged is an interrupted task whose policy cannot be read.
func damaged(v *TaskView) {
	v.Status, v.Interrupted, v.FinishedAt, v.Policy = task.Pending, true, time.Time{}, task.Policy{}
	v.Damage = errors.New("policy: \x1b")
}

func TestDamageIsShown(t *testing.T) {
	for word, want := range map[string]string{
		"Status":  "interrupted (waiting, its owner is dead, and it cannot go on): retry cancel 5b9a39db",
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
	if want := "5b9a39db  interrupted (damaged)  5    exit 7  1m   sh -c 'exit 7'"; got[1] != want {
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
		if policy := strings.Join(strings.Fields(string(got.Policy)), ""); !strings.HasPrefix(policy, tt.policy) ||
			string(got.Damage) != tt.damage {
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
		v.ID, v.Name, v.Command, v.Directory, v.IdempotencyKey = endless, endless, []string{endless, endless}, endless,
			endless
		v.Environment, v.Reason, v.Damage, v.Last, v.Policy.Name = []string{endless}, task.Reason(endless),
			errors.New(endless), a, endless
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
		"run":   func(b *strings.Builder) error { NewLines(b, nil, true).Ended(v.Task, a); return nil },
		"error": func(b *strings.Builder) error { b.WriteString(Message(errors.New(endless))); return nil },
	} {
		for _, line := range lines(t, draw) {
			if n := utf8.RuneCountInString(line); n > 4*longLine+100 {
				t.Errorf("%s: got %d characters from %.20q", name, n, line)
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("%s: got %.40q, want it escaped", name, line)
			}
		}
	}
	var b strings.Builder
	if err := TaskJSON(&b, v, []task.Attempt{a}); err != nil || strings.Count(b.String(), `\u001b`) < 10*len(endless) {
		t.Errorf("got JSON of %d characters, %v", b.Len(), err)
	}
}

// The journal may fail in the middle of a list. What was read stays readable, and the error is the reader's to tell.
func TestListsReportAFailingJournal(t *testing.T) {
	failure := errors.New("disk I/O error")
	broken := func(yield func(TaskView, error) bool) {
		if yield(view(nil), nil) {
			yield(TaskView{}, failure)
		}
	}
	for name, draw := range map[string]func(*strings.Builder, iter.Seq2[TaskView, error]) error{
		"table": func(b *strings.Builder, v iter.Seq2[TaskView, error]) error {
			return Tasks(b, Screen{}, v, Table{}, now)
		},
		"JSON": func(b *strings.Builder, v iter.Seq2[TaskView, error]) error { return TasksJSON(b, v) },
	} {
		var b strings.Builder
		if err := draw(&b, broken); !errors.Is(err, failure) {
			t.Errorf("%s: got %v", name, err)
		}
		if name == "JSON" && !strings.Contains(b.String(), view(nil).ID) {
			t.Errorf("got %q, want what was read", b.String())
		}
	}
	if err := TasksJSON(&closing{err: failure}, all(view(nil))); !errors.Is(err, failure) {
		t.Errorf("a closed pipe: got %v", err)
	}
}

// A list is written task by task and reads like one that was written at once.
func TestTasksJSONHasItsShape(t *testing.T) {
	var whole, streamed strings.Builder
	views := []TaskView{view(nil), view(func(v *TaskView) { v.Command = []string{"a\nb", "\x1b\u202e"} })}
	if err := errors.Join(TasksJSON(&streamed, all(views...)),
		WriteJSON(&whole, map[string]any{"tasks": []taskJSON{taskToJSON(views[0]), taskToJSON(views[1])}})); err != nil {
		t.Fatal(err)
	}
	if streamed.String() != whole.String() {
		t.Errorf("got\n%s\nwant\n%s", streamed.String(), whole.String())
	}
}

func TestPrunable(t *testing.T) {
	hour := now.Add(-time.Hour)
	tests := []struct {
		tasks int
		want  string
	}{
		{0, "would prune no task"},
		{1, "would prune 1 task, which finished 11:00:00 (1h ago)"},
		{1200, "would prune 1200 tasks: the oldest finished 11:00:00 (1h ago), the newest 12:00:00 (now)"},
	}
	for _, tt := range tests {
		if got := lines(t, func(b *strings.Builder) error {
			return Prunable(b, tt.tasks, hour, now,
				now)
		}); len(got) != 1 || got[0] != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
