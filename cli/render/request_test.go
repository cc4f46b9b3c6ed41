package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

func TestFactsOfHTTP(t *testing.T) {
	body := func(parts ...request.Part) func(*TaskView) {
		return func(v *TaskView) { request.Of(v.Task).Body = parts }
	}
	pending := func(reason task.Reason, at time.Duration) func(*TaskView) {
		return func(v *TaskView) {
			v.Status, v.Reason, v.Interrupted, v.NextAttemptAt = task.Pending, reason, true, now.Add(at)
		}
	}
	file := request.Part{File: "/srv/a b.json", Size: 1234, Time: now}
	tests := []struct {
		word, want string
		change     func(*TaskView)
	}{
		{"Request", "POST https://api.example.com/orders", nil},
		{"Request", `A\n b\x1b`, func(v *TaskView) { request.Of(v.Task).Method, request.Of(v.Task).URL = "A\n", "b\x1b" }},
		{"Request", "", func(v *TaskView) { v.Target = nil }},
		{"Command", "", nil},
		{"Headers", "", nil},
		{"Headers", `X: \x1b`, func(v *TaskView) { request.Of(v.Task).Header = []string{"X: \x1b", "Y: z"} }},
		{"User", "", nil},
		{"User", "ann", func(v *TaskView) { request.Of(v.Task).User = "ann" }},
		{"User", "ann, with a password", func(v *TaskView) { request.Of(v.Task).User = "ann:secret" }},
		{"User", "{env:ME}, with a password", func(v *TaskView) { request.Of(v.Task).User = "{env:ME}:{env:PW}" }},
		{"Body", "", nil},
		{"Body", "13 B of text", body(request.Part{Text: []byte("user=ann&pw=x")})},
		{"Body", "@/srv/a b.json (1.2 KiB), 1 B of text", body(file, request.Part{Text: []byte("x")})},
		{"Body", "@/dev/fd/3", body(request.Part{File: "/dev/fd/3"})},
		{"Body", "file=@/srv/a b.json (1.2 KiB), note=2 B of text",
			body(request.Part{Name: "file", File: file.File, Size: 1234}, request.Part{Name: "note", Text: []byte("hi")})},
		{"Body", "stdin", body(request.Part{File: request.StdinFile})},
		{"Body", "stdin (3 KiB)", body(request.Part{File: request.StdinFile, Size: 3 << 10})},
		{"Body", "stdin (3 KiB kept)", func(v *TaskView) {
			v.Status, request.Of(v.Task).Body = task.Pending, []request.Part{{File: request.StdinFile, Size: 3 << 10}}
		}},
		{"Body", "3 B of text, in the URL", func(v *TaskView) {
			request.Of(v.Task).Body, request.Of(v.Task).Get = []request.Part{{Text: []byte("a=b")}}, true
		}},
		{"Network", "", nil},
		{"Network", "over /run/x.sock, connect timeout 5s, certificate not checked, HTTP/1.1, redirects followed",
			func(v *TaskView) {
				request.Of(v.Task).Network = request.Network{UnixSocket: "/run/x.sock", ConnectTimeout: 5 * s, Insecure: true,
					HTTP1: true, MaxRedirects: 50}
			}},
		{"Output", "/srv/reply", func(v *TaskView) { request.Of(v.Task).Output = "/srv/reply" }},
		{"Options", "", nil},
		{"Options", "capture none", func(v *TaskView) { v.Options.Capture = "" }},
		{"Options", "capture all", func(v *TaskView) { v.Options.Capture = task.CaptureBoth }},
		{"Key", "key (sent as Idempotency-Key)", nil},
		{"Key", "key (sent in quotes, as the IETF's draft asks)",
			func(v *TaskView) { request.Of(v.Task).KeyStyle = request.KeySF }},
		{"Key", "key (not sent)", func(v *TaskView) { request.Of(v.Task).KeyStyle = request.KeyNone }},
		{"Key", "key (not sent)", func(v *TaskView) { request.Of(v.Task).Method = "GET" }},
		{"Status", "failed (ambiguous: it may have taken effect; look at the server before you send it again: retry requeue --run 5b9a39db)",
			func(v *TaskView) { v.Status, v.Reason = task.Failed, task.ReasonAmbiguous }},
		{"Status", "gave up (expired: its idempotency key would be older than 1d)",
			func(v *TaskView) { v.Reason, request.Of(v.Task).KeyTTL = task.ReasonExpired, 24*time.Hour }},
		{"Status", "gave up (expired: its idempotency key is too old)",
			func(v *TaskView) { v.Reason, v.Target = task.ReasonExpired, nil }},
		{"Status", "waiting (deferred: the server asks to come back at 14:00:00 (in 2h)): retry resume 5b9a39db",
			pending(task.ReasonDeferred, 2*time.Hour)},
		{"Status", "waiting (deferred: the server asked to come back at 11:00:00 (1h ago)): retry resume 5b9a39db",
			pending(task.ReasonDeferred, -time.Hour)},
		{"Status", "waiting (deferred: the server asks to come back at 14:00:00 (in 2h))",
			func(v *TaskView) { pending(task.ReasonDeferred, 2*time.Hour)(v); v.Interrupted = false }},
	}
	for _, tt := range tests {
		if got := fact(t, requesting(tt.change), tt.word); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.word, got, tt.want)
		}
	}
}

// The whole of what a person reads about a task of HTTP, and every line of it no wider than a terminal.
func TestTaskOfHTTP(t *testing.T) {
	v := requesting(func(v *TaskView) {
		v.Status, v.Reason, v.AttemptCount = task.Failed, task.ReasonAmbiguous, 2
		request.Of(v.Task).Header = []string{"Content-Type: application/json", "X-Trace: 7"}
		request.Of(v.Task).Body = []request.Part{{File: "/srv/order.json", Size: 1234, Time: now}}
	})
	last := ambiguous(lost(2, task.ErrorReset, "wait for the reply: the connection was closed"))
	last.StartedAt = now.Add(-20 * s)
	first := answered(1, 503)
	first.Outcome.Stdout = "try later\x1b[2J\n"
	got := taskOf(t, Screen{Width: 80}, v, first, last)
	want := []string{
		"Request   POST https://api.example.com/orders",
		"Headers   Content-Type: application/json",
		"          X-Trace: 7",
		"Body      @/srv/order.json (1.2 KiB)",
		"#  STARTED   TOOK  OUTCOME  THEN",
		"1  11:59:01  1.3s  503      retry after 2.1s  503 Service Unavailable",
		"2  11:59:40  5ms   reset    failed            wait for the reply: the connectio…",
		"#  DNS   CONNECT  TLS  FIRST BYTE  TOTAL  SENT  ASKED FOR",
		"1  12ms  0.053ms  -    1.2s        1.3s   1     2s",
		"2  5ms   -        -    -           5ms    0     -",
		"Reply of attempt 1",
		`  try later\x1b[2J`,
	}
	rest := got
	for _, line := range want {
		i := indexOf(rest, line)
		if i < 0 {
			t.Fatalf("no %q in its place in\n%s", line, strings.Join(got, "\n"))
		}
		rest = rest[i+1:]
	}
}

func indexOf(lines []string, line string) int {
	for i := range lines {
		if lines[i] == line {
			return i
		}
	}
	return -1
}

// A secret that somebody typed is in nothing that is shown; a reference to one is.
func TestSecretsOfARequestAreNotShown(t *testing.T) {
	v := requesting(func(v *TaskView) {
		v.Target = &request.Request{
			Method: "POST", URL: "https://ann:hunter2@h/", User: "ann:hunter2",
			Header: []string{"Authorization: Bearer hunter2", "Cookie: a=hunter2", "x-api-key:hunter2",
				"Authorization: Bearer {env:TOKEN}", "X-Id: 7"},
			Body: []request.Part{{Text: []byte("hunter2")}}, Network: request.Network{Proxy: "http://p:hunter2@proxy"},
		}
	})
	last := ambiguous(answered(1, 503))
	stats := []task.CommandStats{{Endpoint: v.Target.Endpoint(), Runs: 1}}
	var table, statistics, statsJSON strings.Builder
	testkit.Must(t, Tasks(&table, Screen{}, all(v), Table{}, now), Stats(&statistics, Screen{}, stats, 0, now, now),
		StatsJSON(&statsJSON, stats, now))
	shown := map[string]string{
		"detail": strings.Join(taskOf(t, Screen{}, v, last), "\n"), "JSON": fmt.Sprint(decoded(t, v, last)),
		"table": table.String(),
		"stats": statistics.String(), "JSON of stats": statsJSON.String(), "lines": told(v.Task, last),
	}
	for where, text := range shown {
		if strings.Contains(text, "hunter2") || where != "lines" && !strings.Contains(text, "https://ann:***@h/") {
			t.Errorf("%s: got a secret in %s", where, text)
		}
	}
	if detail := shown["detail"]; !strings.Contains(detail, "Authorization: Bearer {env:TOKEN}\n") ||
		!strings.Contains(detail, "X-Id: 7\n") {
		t.Errorf("got %s, want also what is no secret", detail)
	}
}
