package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func taskOf(t *testing.T, screen Screen, v TaskView, attempts ...task.Attempt) []string {
	t.Helper()
	return lines(t, func(b *strings.Builder) error { return Task(b, screen, v, attempts, now) })
}

// fact is the line of a task's detail that begins with a word; empty where there is none.
func fact(t *testing.T, v TaskView, word string) string {
	t.Helper()
	for _, line := range taskOf(t, Screen{}, v) {
		if strings.HasPrefix(line, word+" ") {
			return strings.TrimSpace(strings.TrimPrefix(line, word))
		}
	}
	return ""
}

// The lines to type next depend on what became of the task.
func TestNextSteps(t *testing.T) {
	captured := []task.Attempt{{Number: 1, Outcome: task.Outcome{Stderr: "x"}}}
	for _, tt := range []struct {
		name     string
		change   func(*TaskView)
		attempts []task.Attempt
		want     string
	}{
		{"gave up", nil, captured, "retry logs 5b9a39db\nretry requeue --run 5b9a39db\n"},
		{"succeeded", func(v *TaskView) { v.Status = task.Succeeded }, nil, ""},
		{"interrupted", func(v *TaskView) { v.Status, v.Interrupted = task.Pending, true }, nil,
			"retry resume 5b9a39db\nretry cancel 5b9a39db\n"},
		{"waiting", func(v *TaskView) { v.Status = task.Pending }, nil,
			"retry resume --now 5b9a39db\nretry cancel 5b9a39db\n"},
		{"running", func(v *TaskView) { v.Status = task.InFlight }, nil,
			"retry status --watch 5b9a39db\nretry cancel 5b9a39db\n"},
		{"done under a cancel", func(v *TaskView) { v.Status, v.Once = task.Cancelled, true },
			[]task.Attempt{{Number: 1, Decision: task.Decision{Verdict: task.VerdictCancelled, Success: true}}}, ""},
		{"cancelled", func(v *TaskView) { v.Status, v.Once = task.Cancelled, true },
			[]task.Attempt{{Number: 1, Decision: task.Decision{Verdict: task.VerdictCancelled}}}, "retry requeue --run 5b9a39db\n"},
		{"ambiguous", func(v *TaskView) { v.Status, v.Reason = task.Failed, task.ReasonAmbiguous }, nil, ""},
	} {
		got := ""
		for line := range strings.Lines(Screen{}.nextSteps(view(tt.change), tt.attempts)) {
			if command, _, found := strings.Cut(line, "  "); found {
				got += command + "\n"
			}
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Where a command failed of which no output was to be kept, a line says how to keep it.
func TestOutputLost(t *testing.T) {
	failed := task.Attempt{Number: 1, Outcome: task.Outcome{Exit: 1}, Decision: task.Decision{Verdict: task.VerdictFailed}}
	running, notFound, timeout := failed, failed, failed
	running.Decision.Verdict = ""
	notFound.Outcome.Error, timeout.Outcome.Error = task.ErrorNotFound, task.ErrorTimeout
	for _, tt := range []struct {
		name    string
		change  func(*TaskView)
		attempt task.Attempt
		want    bool
	}{
		{"it gave up", nil, failed, true},
		{"it timed out", nil, timeout, true},
		{"it waits for another attempt", func(v *TaskView) { v.Status = task.Pending }, failed, true},
		{"it succeeded", func(v *TaskView) { v.Status = task.Succeeded }, failed, false},
		{"it runs for the first time", func(v *TaskView) { v.Status = task.InFlight }, running, false},
		{"it wrote nothing, as it never ran", nil, notFound, false},
		{"its output was captured", func(v *TaskView) { v.Options.Capture = task.CaptureStderr }, failed, false},
		{"its output was held", func(v *TaskView) { v.Options.Output = task.OutputFailure }, failed, false},
		{"a request", func(v *TaskView) { v.Kind = "http" }, failed, false},
	} {
		steps := Screen{}.nextSteps(view(tt.change), []task.Attempt{tt.attempt})
		got := strings.HasPrefix(steps, "\n# its output was not kept: --capture stderr keeps the end of it\n")
		if got != tt.want {
			t.Errorf("%s: got %q, want the line %v", tt.name, steps, tt.want)
		}
	}
}

// A narrow terminal has what is read broken between words, and what is copied in one line.
func TestFactsOfANarrowScreen(t *testing.T) {
	v := view(func(v *TaskView) { v.Directory = "/srv/a directory/with a long name" })
	got := strings.Join(taskOf(t, Screen{Width: 40}, v)[1:6], "\n")
	want := "Command   sh -c 'exit 7'\n" +
		"Directory /srv/a directory/with a long name\n" +
		"Policy    default: 5 attempts, backoff\n" +
		"          exp:1s..1m, jitter phase\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTaskFacts(t *testing.T) {
	tests := []struct {
		word, want string
		change     func(*TaskView)
	}{
		{"Name", "", nil},
		{"Name", `nightly\x1b`, func(v *TaskView) { v.Name = "nightly\x1b" }},
		{"Name", "nightly (once: not run again after a success)", func(v *TaskView) { v.Name, v.Once = "nightly", true }},
		{"Kept", "", nil},
		{"Kept", `HOME, TOKEN, EMPTY, A\x1b`,
			func(v *TaskView) { v.Environment = []string{"HOME=/root", "TOKEN=secret=x", "EMPTY", "A\x1b=1"} }},
		{"Requeued", "", nil},
		{"Requeued", "11:59:00 (1m ago), after attempt 3",
			func(v *TaskView) { v.RequeuedAt, v.RequeuedAfter = now.Add(-time.Minute), 3 }},
		{"Status", "interrupted (waiting, its owner is dead): retry resume 5b9a39db",
			func(v *TaskView) { v.Status, v.Interrupted = task.Pending, true }},
		{"Status", "interrupted (requeued, nobody has taken it up yet): retry resume 5b9a39db", func(v *TaskView) {
			v.Status, v.Interrupted, v.RequeuedAt, v.RequeuedAfter = task.Pending, true, now, v.AttemptCount
		}},
		{"Created", "11:59:00 (1m ago)", nil},
		{"Created", "13:00:00 (now)", func(v *TaskView) { v.CreatedAt = now.Add(time.Hour) }}, // the clock went back
		{"Finished", "13:00:00 (now)", func(v *TaskView) { v.FinishedAt = now.Add(time.Hour) }},
		{"Next", "13:00:00 (in 1h)", func(v *TaskView) {
			v.Status, v.FinishedAt, v.NextAttemptAt = task.Pending, time.Time{}, now.Add(time.Hour)
		}},
	}
	for _, tt := range tests {
		if got := fact(t, view(tt.change), tt.word); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.word, got, tt.want)
		}
	}
}

// A kept variable may be a secret: its value is in no output.
func TestKeptValuesAreNotShown(t *testing.T) {
	v := view(func(v *TaskView) { v.Environment = []string{"TOKEN=hunter2", "GONE"} })
	if got := decoded(t, v)["kept_environment"]; fmt.Sprint(got) != "[TOKEN GONE]" {
		t.Errorf("JSON has %v", got)
	}
	if got := decoded(t, view(nil))["kept_environment"]; fmt.Sprint(got) != "[]" {
		t.Errorf("without any, JSON has %v", got)
	}
	if text := strings.Join(taskOf(t, Screen{}, v), "\n"); strings.Contains(text, "hunter2") {
		t.Errorf("got %s", text)
	}
}

// An attempt that began in the future, to a clock that went back, has run for no time yet.
func TestNoAgeIsNegative(t *testing.T) {
	for _, tt := range []struct {
		at   time.Duration
		want string
	}{{-90 * s, "1m30s"}, {-s / 2, "0s"}, {0, "0s"}, {time.Hour, "0s"}} {
		if got := age(now.Add(tt.at), now); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.at, got, tt.want)
		}
	}
	v := madeNow(task.InFlight, 0)
	a := task.Attempt{Number: 1, StartedAt: now.Add(time.Hour), Outcome: task.Outcome{Exit: task.NoExit}}
	if got := strings.Join(taskOf(t, Screen{}, v, a), "\n"); !strings.Contains(got, "0s    running") {
		t.Errorf("got\n%s", got)
	}
}

// A picture that is drawn again and again shows what is new, and never more than the screen has room for.
func TestTaskFitsAScreen(t *testing.T) {
	v := madeNow(task.Pending, 0)
	var attempts []task.Attempt
	for n := range 40 {
		attempts = append(attempts, tried(n+1, time.Duration(n)*s, s/2, again(s/2)))
	}
	attempts[39].Outcome.Stderr = "why\n"
	tests := []struct {
		height   int
		attempts []string // the numbers that are shown
		timeline bool
		output   bool
	}{
		{0, []string{"1", "40"}, true, true},
		{90, []string{"1", "40"}, true, true},
		{50, []string{"14", "40"}, true, false},
		{24, []string{"36", "40"}, true, false},
		{16, []string{"34", "40"}, false, false},
		{10, []string{"40", "40"}, false, false},
		{8, nil, false, false},
	}
	for _, tt := range tests {
		got := taskOf(t, Screen{Height: tt.height}, v, attempts...)
		if tt.height > 0 && len(got) > tt.height {
			t.Errorf("height %d: %d lines", tt.height, len(got))
		}
		if shown := attemptsIn(got); !slices.Equal(shown, tt.attempts) {
			t.Errorf("height %d: attempts %q, want %q in\n%s", tt.height, shown, tt.attempts, strings.Join(got, "\n"))
		}
		text := strings.Join(got, "\n")
		if strings.Contains(text, "\nTimeline") != tt.timeline || strings.Contains(text, "\nStderr") != tt.output {
			t.Errorf("height %d: got\n%s", tt.height, text)
		}
	}
}

// attemptsIn are the first and the last number in the table of attempts.
func attemptsIn(lines []string) []string {
	var numbers []string
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 4 && words[4] == "1" && words[3] == "exit" {
			numbers = append(numbers, words[0])
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return []string{numbers[0], numbers[len(numbers)-1]}
}

func TestTableSaysWhatIsMissing(t *testing.T) {
	table := Table{Limit: 2, More: "more", None: "none"}
	for n, want := range map[int]string{0: "none", 1: "", 2: "", 3: "more"} {
		views := slices.Repeat([]TaskView{view(nil)}, n)
		got := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{}, all(views...), table, now) })
		last, rows := got[len(got)-1], min(n, 2)
		if want == "" && len(got) != 1+rows || want != "" && last != want {
			t.Errorf("%d tasks: got %q", n, got)
		}
	}
}

func TestOptions(t *testing.T) {
	seed := uint64(0)
	tests := []struct {
		options task.Options
		want    string
	}{
		{task.Options{}, ""},
		{task.Options{Stdin: task.StdinReplay}, "stdin replay"},
		{task.Options{Stdin: task.StdinNull, Output: task.OutputFinal, OutputLimit: 5, Capture: task.CaptureBoth},
			"stdin null, output final, capture both"},
		{task.Options{OnStart: "ping", OnRetry: "date >>log", OnSuccess: "true", OnFailure: "it's", HookTimeout: time.Minute},
			`on start ping, on retry 'date >>log', on success true, on failure 'it'\''s', hook timeout 1m`},
		{task.Options{OnFailure: "a\nb\x1b[2J\u202e\xff"}, `on failure $'a\nb\x1b[2J\u202e\xff'`},
		{task.Options{Seed: &seed}, "seed 0"},
		{task.Options{Output: task.OutputSuccess, Seed: &seed}, "output success, seed 0"},
	}
	for _, tt := range tests {
		if got := Options(&tt.options); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
