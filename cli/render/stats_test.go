package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// rude is what no terminal should get raw.
const rude = "\x1b]0;title\x07\x1b[2J\u202e\u009b\xff\r\n\"\\"

func someStats() []task.CommandStats {
	return []task.CommandStats{
		{
			Name: "nightly", Command: []string{"sh", "-c", "exit 7"}, Runs: 12, FirstTry: 1, Rescues: 2, Failures: 7,
			Cancelled: 1, Unfinished: 1,
			Ended: 10, P50: 1500 * time.Millisecond, P95: 90 * time.Second, Waiting: 26 * time.Hour,
			Last: task.LastRuns{
				Status: task.Exhausted, Outcome: task.Outcome{Exit: 7}, FinishedAt: now.Add(-150 * time.Minute),
				SucceededAt: now.AddDate(0, 0, -3),
			},
		},
		{Name: rude, Command: []string{rude}, Runs: 3, FirstTry: 3, Ended: 3, P50: time.Millisecond,
			Last: task.LastRuns{Status: task.Succeeded, FinishedAt: now.Add(-90 * time.Second),
				SucceededAt: now.Add(-90 * time.Second)}},
		{Command: []string{"sleep", "9"}, Runs: 1, Unfinished: 1, Last: task.LastRuns{Running: true}},
	}
}

func TestStats(t *testing.T) {
	got := lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, someStats(), 4, time.Time{}, now) })
	want := []string{
		`LAST           RUNS  FIRST TRY  RESCUED  FAILED  CANCELLED  OPEN  P50   P95    WAITED  COMMAND`,
		`exit 7 2h ago  12    1          2        7       1          1     1.5s  1m30s  1d2h    nightly: sh -c 'exit 7'`,
		`ok 1m ago      3     3          -        -       -          -     1ms   0s     -       \x1b]0;title\x07\x1b[2J\u202e\u009b\xff\r\n"\: ` +
			`$'\x1b]0;title\x07\x1b[2J\u202e\u009b\xff\r\n"\\'`,
		`running        1     -          -        -       -          1     -     -      -       sleep 9`,
		`… and 4 more: retry stats --limit 0`,
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Columns without a single value make room for the command lines.
func TestStatsLeaveOutWhatNeverHappened(t *testing.T) {
	quiet, open := task.CommandStats{Command: []string{"a"}, Runs: 1},
		task.CommandStats{Command: []string{"b"}, Runs: 1, Unfinished: 1}
	tests := map[string][]task.CommandStats{
		"LAST  RUNS  FIRST TRY  RESCUED  FAILED  P50  P95  WAITED  COMMAND":       {quiet},
		"LAST  RUNS  FIRST TRY  RESCUED  FAILED  OPEN  P50  P95  WAITED  COMMAND": {quiet, open},
	}
	for want, commands := range tests {
		if got := lines(t, func(b *strings.Builder) error {
			return Stats(b, Screen{}, commands, 0, time.Time{},
				now)
		}); got[0] != want {
			t.Errorf("got %s, want %s", got[0], want)
		}
	}
}

func TestStatsOfNothing(t *testing.T) {
	tests := map[string]time.Time{"no tasks yet": {}, "no tasks since 11:00:00": now.Add(-time.Hour),
		"no tasks since 2026-03-01 12:00:00": now.AddDate(0, 0, -3)}
	for want, since := range tests {
		got := lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, nil, 0, since, now) })
		if len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Failures catch the eye; a command without any does not.
func TestStatsColor(t *testing.T) {
	got := lines(t, func(b *strings.Builder) error {
		return Stats(b, Screen{Width: 200, Color: true}, someStats(), 0, time.Time{}, now)
	})
	if !strings.Contains(got[1], "\x1b[31m7\x1b[") || strings.Contains(got[2], "\x1b") {
		t.Errorf("got %q", got)
	}
}

func TestLastRun(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	exhausted := func(o task.Outcome) task.LastRuns {
		return task.LastRuns{Status: task.Exhausted, Outcome: o, FinishedAt: ago(time.Hour)}
	}
	tests := []struct {
		last task.LastRuns
		want string
	}{
		{task.LastRuns{}, "-"},
		{task.LastRuns{Status: task.Failed, FinishedAt: now, Running: true}, "running"},
		{task.LastRuns{Status: task.Succeeded, FinishedAt: now}, "ok now"},
		{task.LastRuns{Status: task.Succeeded, FinishedAt: now.Add(time.Hour)}, "ok now"}, // the clock was set back
		{task.LastRuns{Status: task.Succeeded, Outcome: task.Outcome{Exit: 3}, FinishedAt: ago(59 * time.Second)},
			"ok 59s ago"},
		{task.LastRuns{Status: task.Succeeded, FinishedAt: ago(119 * time.Second)}, "ok 1m ago"},
		{task.LastRuns{Status: task.Failed, Outcome: task.Outcome{Exit: 1}, FinishedAt: ago(23*time.Hour + 59*time.Minute)},
			"exit 1 23h ago"},
		{task.LastRuns{Status: task.Failed, Outcome: task.Outcome{Exit: 1}, FinishedAt: ago(47 * time.Hour)},
			"exit 1 1d ago"},
		{exhausted(task.Outcome{Exit: 124, Error: task.ErrorTimeout}), "timeout 1h ago"},
		{exhausted(task.Outcome{Exit: 0}), "gave up 1h ago"}, // too few successes in a row
		{exhausted(task.Outcome{Exit: task.NoExit}), "gave up 1h ago"},
	}
	for _, tt := range tests {
		if got := (Screen{}).lastRun(&tt.last, now); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// The lightest columns give way to the command lines, how a command stands never.
func TestStatsOnANarrowScreen(t *testing.T) {
	tests := map[int]string{
		0:   "LAST RUNS FIRST TRY RESCUED FAILED CANCELLED OPEN P50 P95 WAITED COMMAND",
		120: "LAST RUNS FIRST TRY RESCUED FAILED CANCELLED OPEN P50 P95 WAITED COMMAND",
		80:  "LAST RUNS RESCUED FAILED OPEN P95 COMMAND",
		30:  "LAST RUNS FAILED COMMAND",
	}
	for width, want := range tests {
		got := lines(t, func(b *strings.Builder) error {
			return Stats(b, Screen{Width: width}, someStats(), 0, time.Time{}, now)
		})
		if title := strings.Join(strings.Fields(got[0]), " "); !strings.HasPrefix(want, strings.TrimSuffix(title, "…")) ||
			len(title) < 20 {
			t.Errorf("%d columns: got %q, want %q", width, title, want)
		}
	}
}

// Where the command lines are short, nothing gives way to them.
func TestStatsKeepWhatFits(t *testing.T) {
	short := []task.CommandStats{{Command: []string{"a"}, Runs: 1}}
	const full = "LAST  RUNS  FIRST TRY  RESCUED  FAILED  P50  P95  WAITED  COMMAND"
	for width, want := range map[int]string{len(full): full, len(full) - 1: strings.Replace(full, "WAITED  ", "", 1)} {
		got := lines(t, func(b *strings.Builder) error { return Stats(b, Screen{Width: width}, short, 0, time.Time{}, now) })
		if got[0] != want {
			t.Errorf("%d columns: got %q, want %q", width, got[0], want)
		}
	}
}

func TestStatsFitTheScreen(t *testing.T) {
	for _, line := range lines(t, func(b *strings.Builder) error {
		return Stats(b, Screen{Width: 70}, someStats(), 0,
			time.Time{}, now)
	}) {
		if n := len([]rune(line)); n > 70 {
			t.Errorf("got %d characters, want them to fit the screen: %s", n, line)
		}
	}
}

func TestStatsJSON(t *testing.T) {
	var b strings.Builder
	if err := StatsJSON(&b, someStats(), now.UTC()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u202e\u009b") {
		t.Errorf("got %q, want it escaped", b.String())
	}
	var got struct {
		Since    time.Time
		Commands []map[string]any
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || !got.Since.Equal(now) || len(got.Commands) != 3 {
		t.Fatalf("%v\n%s", err, b.String())
	}
	want := `{"cancelled":1,"command":["sh","-c","exit 7"],"duration_ms":{"p50":1500,"p95":90000},"failures":7,"first_try":1,"last_finished_at":"2026-03-04T09:30:00.000Z",` +
		`"last_status":"EXHAUSTED","last_success_at":"2026-03-01T12:00:00.000Z","name":"nightly",` +
		`"request":null,"rescues":2,"runs":12,"unfinished":1,"waiting_ms":93600000}`
	if text, _ := json.Marshal(got.Commands[0]); string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	if last := got.Commands[2]; last["name"] != nil || last["duration_ms"] != nil ||
		last["last_status"] != nil || last["last_finished_at"] != nil || last["last_success_at"] != nil {
		t.Errorf("got %v, want null for what is absent", last)
	}
}

// Without a single command there is an empty list, not null.
func TestStatsJSONOfNothing(t *testing.T) {
	got := strings.Join(lines(t, func(b *strings.Builder) error { return StatsJSON(b, nil, time.Time{}) }), "")
	if got != `{  "since": null,  "commands": []}` {
		t.Errorf("got %s", got)
	}
}

func TestStatsOfHTTP(t *testing.T) {
	all := []task.CommandStats{
		{Endpoint: task.Endpoint{Method: "GET", URL: "https://h/a"}, Runs: 1},
		{Name: "n", Endpoint: task.Endpoint{Method: "PUT", URL: "https://h/b"}, Runs: 2},
	}
	all[0].Last = task.LastRuns{Status: task.Failed, FinishedAt: now, Outcome: answered(1, 503).Outcome}
	got := lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, all, 0, time.Time{}, now) })
	if !strings.HasPrefix(got[1], "503 now ") || !strings.HasSuffix(got[1], "  GET https://h/a") ||
		!strings.HasSuffix(got[2], "  n: PUT https://h/b") {
		t.Errorf("got %q", got)
	}
	text := strings.Join(lines(t, func(b *strings.Builder) error { return StatsJSON(b, all, time.Time{}) }), "")
	if want := `"command": null,      "request": {        "method": "GET",        "url": "https://h/a"      },`; !strings.Contains(text, want) {
		t.Errorf("got %s", text)
	}
}
