package render

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// loggedFields are the fields of the line that ends an attempt.
func loggedFields(t *testing.T, a task.Attempt) map[string]any {
	t.Helper()
	var b strings.Builder
	NewLog(&b, false).Ended(requesting(nil).Task, a)
	var fields map[string]any
	if err := json.Unmarshal([]byte(b.String()), &fields); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return fields
}

func TestLogOfHTTP(t *testing.T) {
	tests := []struct {
		attempt task.Attempt
		want    map[string]any
	}{
		{answered(1, 503), map[string]any{"http_status": 503.0, "server_delay_ms": 2000.0, "requests_written": 1.0, "exit": 22.0, "detail": "status 503 Service Unavailable"}},
		{lost(1, task.ErrorDNS, "no such host: x"), map[string]any{"http_status": nil, "server_delay_ms": nil, "requests_written": 0.0, "error": "dns", "detail": "no such host: x"}},
		{wrote(1, "", ""), map[string]any{"http_status": nil, "requests_written": nil, "detail": nil}},
	}
	for _, tt := range tests {
		got := loggedFields(t, tt.attempt)
		for name, want := range tt.want {
			if got[name] != want {
				t.Errorf("%s: got %v, want %v", name, got[name], want)
			}
		}
	}
}

// The log of a job names the request, and its annotation what to do.
func TestCIOfHTTP(t *testing.T) {
	page := filepath.Join(t.TempDir(), "summary")
	var github, gitlab strings.Builder
	for o, b := range map[Observer]*strings.Builder{
		newGitHub(&Lines{w: &github}, &github, page): &github, newGitLab(&Lines{w: &gitlab}, &gitlab): &gitlab,
	} {
		tk, last := requesting(nil).Task, ambiguous(answered(1, 503))
		tk.AttemptCount = 1
		o.Started(tk)
		o.Ended(tk, last)
		o.Finished(tk, runner.Result{Decision: last.Decision, Outcome: last.Outcome})
		if !strings.Contains(b.String(), "retry: attempt 1/5: POST https://api.example.com/orders\n") {
			t.Errorf("no heading in\n%s", b.String())
		}
	}
	const annotation = "::error title=retry::POST https://api.example.com/orders: FAILED, ambiguous: POST may have taken effect, and is not safe to repeat " +
		"(retry status 5b9a39db)%0Ahint: look at the server"
	if !strings.Contains(github.String(), annotation) {
		t.Errorf("no annotation in\n%s", github.String())
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### `POST https://api.example.com/orders`: FAILED, ambiguous: ", " | 1.3s | 503 Service Unavailable | failed |\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hint:") {
		t.Errorf("a heading has hints:\n%s", text)
	}
}

// What a server, or somebody with a URL, brings along reaches nobody raw.
func TestHTTPIsEscaped(t *testing.T) {
	for _, text := range nasty {
		v := requesting(func(v *TaskView) {
			v.Request = &task.Request{
				Method: text, URL: text, Header: []string{text}, User: text + ":x", Output: text,
				Body: []task.Part{{File: text, Name: text}}, Network: task.Network{UnixSocket: text, Proxy: text, Resolve: []string{text}},
			}
		})
		a := ambiguous(lost(1, task.ErrorReset, text))
		a.Outcome.HTTP.Default.Event = text
		checkDrawn(t, text, taskOf(t, Screen{}, v, a))
		checkDrawn(t, text, strings.Split(told(v.Task, a), "\n"))
		var b strings.Builder
		if err := TaskJSON(&b, v, []task.Attempt{a}); err != nil {
			t.Fatal(err)
		}
		checkDrawn(t, text, strings.Split(b.String(), "\n"))
		stats := []task.CommandStats{{Method: text, URL: text, Runs: 1}}
		checkDrawn(t, text, lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, stats, 0, now, now) }))
	}
}
