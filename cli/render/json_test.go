package render

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// decoded returns a task's JSON as a program reads it.
func decoded(t *testing.T, v TaskView, attempts ...task.Attempt) map[string]any {
	t.Helper()
	var b strings.Builder
	if err := TaskJSON(&b, v, attempts); err != nil {
		t.Fatal(err)
	}
	var tk map[string]any
	if err := json.Unmarshal([]byte(b.String()), &tk); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return tk
}

// attemptJSONOf is the JSON of one attempt.
func attemptJSONOf(t *testing.T, a task.Attempt) map[string]any {
	t.Helper()
	return decoded(t, view(nil), a)["attempts"].([]any)[0].(map[string]any)
}

// Names and their order are what programs rely on: one is added, none is changed or left out.
func TestTaskJSONHasItsFields(t *testing.T) {
	var b strings.Builder
	if err := TaskJSON(&b, requesting(nil), []task.Attempt{answered(1, 503)}); err != nil {
		t.Fatal(err)
	}
	const want = `id name once kind status interrupted reason command directory request method url headers policy ` +
		`name attempts backoff jitter timeout_ms kill_after_ms budget_ms reset_after_ms consecutive retry_on stop_on success_on rules ` +
		`idempotency_key kept_environment attempt_count created_at requeued_at finished_at next_attempt_at damage queue worker partition tags attempts ` +
		`number started_at duration_ms exit signal http_status error message decision delay_ms rule stdout_tail stderr_tail requests_written ` +
		`event server_delay_ms phases_ms dns connect tls first_byte total`
	var names []string
	for line := range strings.Lines(b.String()) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), `": `); ok {
			names = append(names, strings.TrimPrefix(name, `"`))
		}
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	docs, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(docs), "`"+name+"`") {
			t.Errorf("got the field %s, want it in docs/json.md", name)
		}
	}
}

func TestAttemptJSON(t *testing.T) {
	started := time.Date(2026, 3, 4, 12, 0, 0, 123_456_789, time.FixedZone("CET", 3600))
	empty := map[string]any{
		"number": 1.0, "started_at": nil, "duration_ms": 0.0, "exit": 0.0, "signal": nil, "http_status": nil, "error": nil,
		"message":  nil,
		"decision": nil, "delay_ms": nil, "rule": nil, "stdout_tail": nil, "stderr_tail": nil, "requests_written": nil,
		"event": nil, "server_delay_ms": nil, "phases_ms": nil,
	}
	tests := []struct {
		name    string
		attempt task.Attempt
		want    map[string]any
	}{
		{"success", task.Attempt{Decision: task.Decision{Verdict: task.VerdictSucceeded}},
			map[string]any{"decision": "succeeded"}},
		{"in flight", task.Attempt{StartedAt: started, Outcome: task.Outcome{Exit: task.NoExit}},
			map[string]any{"started_at": "2026-03-04T11:00:00.123Z", "exit": nil, "duration_ms": nil}},
		{"crashed", task.Attempt{Outcome: task.Crashed(), Decision: task.Decision{Verdict: task.VerdictInterrupted}},
			map[string]any{"exit": nil, "duration_ms": nil, "decision": "interrupted", "message": task.Crashed().Message}},
		{"retry", task.Attempt{Outcome: task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout,
			Duration: 1999 * time.Microsecond},
			Decision: task.Decision{Verdict: task.VerdictRetry, Delay: 90 * time.Second}},
			map[string]any{"exit": 143.0, "signal": "SIGTERM", "error": "timeout", "duration_ms": 1.0, "decision": "retry",
				"delay_ms": 90000.0}},
		{"retry at once", task.Attempt{Decision: task.Decision{Verdict: task.VerdictRetry}},
			map[string]any{"decision": "retry", "delay_ms": 0.0}},
		{"tails", wrote(1, "out\n", "err\n"), map[string]any{"exit": 1.0, "stdout_tail": "out\n", "stderr_tail": "err\n"}},
		{"one file", wrote(1, "x", "x"), map[string]any{"exit": 1.0, "stdout_tail": "x", "stderr_tail": "x"}},
		{"answered", answered(1, 503), map[string]any{
			"started_at": "2026-03-04T11:59:01.000Z", "duration_ms": 1300.0, "exit": 22.0, "http_status": 503.0,
			"message":  "status 503 Service Unavailable",
			"decision": "retry", "delay_ms": 2100.0, "requests_written": 1.0, "event": "503", "server_delay_ms": 2000.0,
			"phases_ms": map[string]any{"dns": 12.0, "connect": 0.0, "tls": nil, "first_byte": 1200.0, "total": 1300.0},
		}},
		{"no address", lost(1, task.ErrorDNS, "no such host: x"), map[string]any{
			"duration_ms": 5.0, "exit": 6.0, "error": "dns", "message": "no such host: x", "decision": "failed",
			"requests_written": 0.0,
			"phases_ms":        map[string]any{"dns": 5.0, "connect": nil, "tls": nil, "first_byte": nil, "total": 5.0},
		}},
		{"stderr alone", wrote(1, "", "\n"), map[string]any{"exit": 1.0, "stderr_tail": "\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.attempt.Number = 1
			want := map[string]any{}
			for name, value := range empty {
				want[name] = value
			}
			for name, value := range tt.want {
				want[name] = value
			}
			if got := attemptJSONOf(t, tt.attempt); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// What was captured reaches a program as it was, but for bytes that no JSON can hold: those are U+FFFD.
func TestTailsInJSON(t *testing.T) {
	for _, text := range append(nasty, strings.Join(nasty, "\n"), `"\</script>&`) {
		a := attemptJSONOf(t, wrote(1, text, "x"+text))
		valid := replaced(text)
		if a["stdout_tail"] != valid || a["stderr_tail"] != "x"+valid {
			t.Errorf("%q: got %q and %q", text, a["stdout_tail"], a["stderr_tail"])
		}
	}
}

// A terminal just draws it, as it does all that a command brought along.
func TestJSONIsEscaped(t *testing.T) {
	for _, text := range nasty {
		var b strings.Builder
		v := view(func(v *TaskView) { v.Command, v.Directory, v.Name = []string{text}, text, text })
		if err := TaskJSON(&b, v, []task.Attempt{wrote(1, text, text)}); err != nil {
			t.Fatal(err)
		}
		checkDrawn(t, text, strings.Split(b.String(), "\n"))
		b.Reset()
		if err := TasksJSON(&b, all(v)); err != nil {
			t.Fatal(err)
		}
		checkDrawn(t, text, strings.Split(b.String(), "\n"))
	}
}

// replaced has U+FFFD in place of each byte that is no UTF-8.
func replaced(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// A list has no attempts: it would be long.
func TestTasksJSONHasNoAttempts(t *testing.T) {
	var b strings.Builder
	if err := TasksJSON(&b, all(view(nil), view(nil))); err != nil {
		t.Fatal(err)
	}
	var list struct{ Tasks []map[string]any }
	if err := json.Unmarshal([]byte(b.String()), &list); err != nil || len(list.Tasks) != 2 {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if _, ok := list.Tasks[0]["attempts"]; ok {
		t.Error("it has")
	}
	b.Reset()
	if err := TasksJSON(&b, all()); err != nil || strings.Join(strings.Fields(b.String()), "") != `{"tasks":[]}` {
		t.Errorf("no tasks: got %v, %s", err, b.String())
	}
}

// A task without attempts has an empty list, not null.
func TestTaskJSONWithoutAttempts(t *testing.T) {
	if got := fmt.Sprint(decoded(t, view(nil))["attempts"]); got != "[]" {
		t.Errorf("got %s", got)
	}
}
