package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// rude is what no terminal should get raw.
const rude = "\x1b]0;title\x07\x1b[2J\u202e\u009b\xff\r\n\"\\"

func someStats() []runner.CommandStats {
	return []runner.CommandStats{
		{
			Name: "nightly", Command: []string{"sh", "-c", "exit 7"}, Runs: 12, FirstTry: 1, Rescues: 2, Failures: 7, Cancelled: 1, Unfinished: 1,
			Ended: 10, P50: 1500 * time.Millisecond, P95: 90 * time.Second, Waiting: 26 * time.Hour,
		},
		{Name: rude, Command: []string{rude}, Runs: 3, FirstTry: 3, Ended: 3, P50: time.Millisecond},
		{Command: []string{"sleep", "9"}, Runs: 1, Unfinished: 1},
	}
}

func TestStats(t *testing.T) {
	got := lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, someStats(), 4, time.Time{}, now) })
	want := []string{
		`RUNS  FIRST TRY  RESCUED  FAILED  CANCELLED  OPEN  P50   P95    WAITED  COMMAND`,
		`12    1          2        7       1          1     1.5s  1m30s  1d2h    nightly: sh -c 'exit 7'`,
		`3     3          -        -       -          -     1ms   0s     -       \x1b]0;title\x07\x1b[2J\u202e\u009b\xff\r\n"\: ` +
			`$'\x1b]0;title\x07\x1b[2J\u202e\u009b\xff\r\n"\\'`,
		`1     -          -        -       -          1     -     -      -       sleep 9`,
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
	quiet, open := runner.CommandStats{Command: []string{"a"}, Runs: 1}, runner.CommandStats{Command: []string{"b"}, Runs: 1, Unfinished: 1}
	tests := map[string][]runner.CommandStats{
		"RUNS  FIRST TRY  RESCUED  FAILED  P50  P95  WAITED  COMMAND":       {quiet},
		"RUNS  FIRST TRY  RESCUED  FAILED  OPEN  P50  P95  WAITED  COMMAND": {quiet, open},
	}
	for want, commands := range tests {
		if got := lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, commands, 0, time.Time{}, now) }); got[0] != want {
			t.Errorf("got %s, want %s", got[0], want)
		}
	}
}

func TestStatsOfNothing(t *testing.T) {
	tests := map[string]time.Time{"no tasks yet": {}, "no tasks since 11:00:00": now.Add(-time.Hour), "no tasks since 2026-03-01 12:00:00": now.AddDate(0, 0, -3)}
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

func TestStatsFitTheScreen(t *testing.T) {
	for _, line := range lines(t, func(b *strings.Builder) error { return Stats(b, Screen{Width: 70}, someStats(), 0, time.Time{}, now) }) {
		if n := len([]rune(line)); n > 70 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

func TestStatsJSON(t *testing.T) {
	var b strings.Builder
	if err := StatsJSON(&b, someStats(), now.UTC()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u202e\u009b") {
		t.Errorf("raw: %q", b.String())
	}
	var got struct {
		Since    time.Time
		Commands []map[string]any
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || !got.Since.Equal(now) || len(got.Commands) != 3 {
		t.Fatalf("%v\n%s", err, b.String())
	}
	want := `{"cancelled":1,"command":["sh","-c","exit 7"],"duration_ms":{"p50":1500,"p95":90000},"failures":7,"first_try":1,"name":"nightly",` +
		`"rescues":2,"runs":12,"unfinished":1,"waiting_ms":93600000}`
	if text, _ := json.Marshal(got.Commands[0]); string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	if last := got.Commands[2]; last["name"] != nil || last["duration_ms"] != nil {
		t.Errorf("absent is null: %v", last)
	}
}

// Without a single command there is an empty list, not null.
func TestStatsJSONOfNothing(t *testing.T) {
	got := strings.Join(lines(t, func(b *strings.Builder) error { return StatsJSON(b, nil, time.Time{}) }), "")
	if got != `{  "since": null,  "commands": []}` {
		t.Errorf("got %s", got)
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
		if got := lines(t, func(b *strings.Builder) error { return Prunable(b, tt.tasks, hour, now, now) }); len(got) != 1 || got[0] != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
