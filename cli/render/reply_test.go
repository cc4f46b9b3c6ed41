package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

const ms = time.Millisecond

// requesting is a view of a POST that was given up.
func requesting(change func(*TaskView)) TaskView {
	return view(func(v *TaskView) {
		v.Number, v.Kind, v.Command = 1, request.Kind, nil
		v.Target = &request.Request{Method: "POST", URL: "https://api.example.com/orders"}
		v.Last, v.Options.Capture = answered(5, 503), task.CaptureStderr
		if change != nil {
			change(v)
		}
	})
}

// answered is an attempt that got a status, and is to be made again.
func answered(number, status int) task.Attempt {
	text := map[int]string{429: "Too Many Requests", 503: "Service Unavailable", 404: "Not Found"}[status]
	e := &task.Reply{Status: status, Written: 1, ServerDelay: 2 * s, Default: task.Eligibility{Event: "503"}}
	e.Phases = task.Phases{DNS: 12 * ms, Connect: 53 * time.Microsecond, FirstByte: 1200 * ms, Total: 1300 * ms}
	return task.Attempt{
		Number: number, StartedAt: now.Add(-time.Minute + time.Duration(number)*s),
		Outcome: task.Outcome{Exit: 22, Message: "status " + strings.TrimSpace(statusOf(status)+" "+text),
			Duration: 1300 * ms, Reply: e},
		Decision: task.Decision{Verdict: task.VerdictRetry, Delay: 2100 * ms},
	}
}

func statusOf(status int) string {
	return Outcome(task.Outcome{Reply: &task.Reply{Status: status}})
}

// lost is an attempt without a reply, and the last one.
func lost(number int, class task.ErrorClass, text string) task.Attempt {
	exit := map[task.ErrorClass]int{task.ErrorDNS: 6, task.ErrorReset: 52}[class]
	return task.Attempt{
		Number: number,
		Outcome: task.Outcome{Exit: exit, Error: class, Message: text, Duration: 5 * ms,
			Reply: &task.Reply{Phases: task.Phases{DNS: 5 * ms, Total: 5 * ms}}},
		Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible},
	}
}

func ambiguous(a task.Attempt) task.Attempt {
	a.Decision = task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonAmbiguous}
	return a
}

// untilLater is an attempt whose server wants more than is waited for.
func untilLater(a task.Attempt) task.Attempt {
	a.Outcome.Reply.ServerDelay = 2 * time.Hour
	a.Decision = task.Decision{Verdict: task.VerdictRetry, Reason: task.ReasonDeferred, Delay: 2 * time.Hour}
	return a
}

func TestOutcomesOfHTTP(t *testing.T) {
	tests := []struct {
		attempt        task.Attempt
		outcome, words string
	}{
		{answered(1, 503), "503", "503 Service Unavailable"},
		{lost(1, task.ErrorReset, "wait for the reply: the connection was closed"), "reset",
			"wait for the reply: the connection was closed"},
		{task.Attempt{Outcome: task.Outcome{Reply: &task.Reply{Status: 200}}, Decision: task.Decision{Success: true}},
			"200", "200"},
		{task.Attempt{Outcome: task.Outcome{Reply: &task.Reply{Status: 200}}}, "200", "200"}, // --success-on wants something else
		{task.Attempt{Outcome: task.Outcome{Exit: 18, Error: task.ErrorTruncated, Reply: &task.Reply{Status: 200}}},
			"truncated", "truncated"},
		{task.Attempt{Outcome: task.Outcome{Exit: 143, Signal: "SIGTERM", Reply: &task.Reply{}}}, "SIGTERM", "SIGTERM"},
	}
	for _, tt := range tests {
		o := tt.attempt.Outcome
		if got := Outcome(o); got != tt.outcome {
			t.Errorf("got %q, want %q", got, tt.outcome)
		}
		if got := Description(o, tt.attempt.Decision); got != tt.words {
			t.Errorf("got %q, want %q", got, tt.words)
		}
	}
}

// told are the lines about a run of HTTP whose last attempt was this.
func told(tk *task.Task, attempts ...task.Attempt) string {
	var b strings.Builder
	l := NewLines(&b, nil, false)
	for _, a := range attempts {
		tk.AttemptCount = a.Number
		l.Ended(tk, a)
	}
	last := attempts[len(attempts)-1]
	l.Finished(tk, runner.Result{Decision: last.Decision, Outcome: last.Outcome})
	return b.String()
}

func TestLinesOfHTTP(t *testing.T) {
	exhausted := answered(2, 503)
	exhausted.Decision = task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
	expired := answered(2, 503)
	expired.Decision = task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonExpired}
	fatal := answered(2, 404)
	fatal.Decision = task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible}
	reset := ambiguous(lost(2, task.ErrorReset, "wait for the reply: the connection was closed"))
	killed := task.Attempt{Number: 2, Outcome: task.Crashed(), Decision: reset.Decision}
	const first = "retry: attempt 1/5: 503 Service Unavailable after 1.3s; next in 2.1s (the server asks for 2s)\n"
	const ambiguity = "retry: failed, ambiguous: POST may have taken effect, and is not safe to repeat (retry status 5b9a39db)\n" +
		"hint: look at the server before you send it again: retry requeue --run 5b9a39db\n" +
		"hint: where the server deduplicates, --idempotency-key KEY or --idempotent lets retry send it again by itself\n"
	tests := []struct {
		name string
		last task.Attempt
		want string
	}{
		{"fatal", fatal, first + "retry: attempt 2/5: 404 Not Found after 1.3s\n" +
			"retry: not retried: 404 is final (retry status 5b9a39db)\n"},
		{"ambiguous", reset, first + "retry: attempt 2/5: wait for the reply: the connection was closed; POST may have taken effect\n" + ambiguity},
		{"killed", killed, first + "retry: attempt 2/5: retry itself was killed, or the machine went down; POST may have taken effect\n" +
			strings.Replace(ambiguity, "POST", "retry was killed while it ran; POST", 1)},
		{"deferred", untilLater(answered(2, 429)),
			first + "retry: attempt 2/5: 429 Too Many Requests after 1.3s; the server asks for a pause of 2h\n" +
				"retry: deferred until 2090-01-02 14:05:00 (in T), as the server asks; to go on: retry resume 5b9a39db\n"},
		{"budget", exhausted, first + "retry: attempt 2/5: 503 Service Unavailable after 1.3s\n" +
			"retry: gave up after 2 attempts in T: no time is left in the budget of 1m (the server asks for 2s), 503 Service Unavailable (retry status 5b9a39db)\n"},
		{"expired", expired, first + "retry: attempt 2/5: 503 Service Unavailable after 1.3s\n" +
			"retry: gave up after 2 attempts in T: the idempotency key would be older than 1d by the next attempt, 503 Service Unavailable (retry status 5b9a39db)\n" +
			"hint: the server may have forgotten the key, and take the request for another one: look at it before you send that anew\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tk := requesting(nil).Task
			tk.Policy.Budget, request.Of(tk).KeyTTL = time.Minute, 24*time.Hour
			tk.NextAttemptAt = time.Date(2090, 1, 2, 14, 5, 0, 0, time.Local)
			if got := withoutSpans(told(tk, answered(1, 503), tt.last)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// withoutSpans leaves out what depends on the time of day.
func withoutSpans(text string) string {
	for _, around := range [][2]string{{"attempts in ", ":"}, {"(in ", ")"}} {
		if before, rest, found := strings.Cut(text, around[0]); found {
			_, after, _ := strings.Cut(rest, around[1])
			text = before + around[0] + "T" + around[1] + after
		}
	}
	return text
}

// Without a journal there is nothing to requeue or to resume.
func TestLinesOfHTTPWithoutAJournal(t *testing.T) {
	for _, last := range []task.Attempt{ambiguous(answered(1, 503)), untilLater(answered(1, 429))} {
		tk := requesting(nil).Task
		tk.Number = 0
		if got := told(tk, last); strings.Contains(got, "retry re") || strings.Contains(got, "retry status") {
			t.Errorf("got\n%s", got)
		}
	}
}

// A stdin that is gone cannot be sent again.
func TestAmbiguousWithStdin(t *testing.T) {
	tk := requesting(func(v *TaskView) { request.Of(v.Task).Body = []request.Part{{File: request.StdinFile}} }).Task
	if got := told(tk, ambiguous(answered(1, 503))); strings.Contains(got, "requeue") ||
		!strings.Contains(got, "its stdin is kept no longer") {
		t.Errorf("got\n%s", got)
	}
}

func TestTableOfHTTP(t *testing.T) {
	later := func(at time.Duration, interrupted bool) func(*TaskView) {
		return func(v *TaskView) {
			v.Status, v.Reason, v.Interrupted, v.AttemptCount = task.Pending, task.ReasonDeferred, interrupted, 1
			v.Last, v.FinishedAt, v.NextAttemptAt = untilLater(answered(1, 429)), time.Time{}, now.Add(at)
		}
	}
	views := []TaskView{
		requesting(nil), requesting(later(2*time.Hour, true)), requesting(later(2*time.Hour, false)),
		requesting(later(-time.Hour, true)),
		requesting(func(v *TaskView) { v.Status, v.Name, v.Last = task.Failed, "order", lost(5, task.ErrorReset, "") }),
		requesting(func(v *TaskView) { request.Of(v.Task).Method, request.Of(v.Task).URL = "A\x1b", "b\u202ec" }),
		requesting(func(v *TaskView) { v.Target = nil }),
	}
	got := lines(t, func(b *strings.Builder) error { return Tasks(b, Screen{}, all(views...), Table{}, now) })
	want := []string{
		"ID        STATUS   TRY  LAST   NEXT   AGE  COMMAND",
		"5b9a39db  gave up  5/5  503    -      1m   POST https://api.example.com/orders",
		"5b9a39db  waiting  1/5  429    in 2h  1m   POST https://api.example.com/orders",
		"5b9a39db  waiting  1/5  429    in 2h  1m   POST https://api.example.com/orders",
		"5b9a39db  waiting  1/5  429    -      1m   POST https://api.example.com/orders",
		"5b9a39db  failed   5/5  reset  -      1m   order: POST https://api.example.com/orders",
		`5b9a39db  gave up  5/5  503    -      1m   A\x1b b\u202ec`,
		"5b9a39db  gave up  5/5  503    -      1m   a request that cannot be read",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

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
		{answered(1, 503), map[string]any{"http_status": 503.0, "server_delay_ms": 2000.0, "requests_written": 1.0,
			"exit": 22.0, "detail": "status 503 Service Unavailable"}},
		{lost(1, task.ErrorDNS, "no such host: x"),
			map[string]any{"http_status": nil, "server_delay_ms": nil, "requests_written": 0.0, "error": "dns",
				"detail": "no such host: x"}},
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
// What a server, or somebody with a URL, brings along reaches nobody raw.
func TestHTTPIsEscaped(t *testing.T) {
	for _, text := range nasty {
		v := requesting(func(v *TaskView) {
			v.Target = &request.Request{
				Method: text, URL: text, Header: []string{text}, User: text + ":x", Output: text,
				Body:    []request.Part{{File: text, Name: text}},
				Network: request.Network{UnixSocket: text, Proxy: text, Resolve: []string{text}},
			}
		})
		a := ambiguous(lost(1, task.ErrorReset, text))
		a.Outcome.Reply.Default.Event = text
		checkDrawn(t, text, taskOf(t, Screen{}, v, a))
		checkDrawn(t, text, strings.Split(told(v.Task, a), "\n"))
		var b strings.Builder
		if err := TaskJSON(&b, v, []task.Attempt{a}); err != nil {
			t.Fatal(err)
		}
		checkDrawn(t, text, strings.Split(b.String(), "\n"))
		stats := []task.CommandStats{{Endpoint: task.Endpoint{Method: text, URL: text}, Runs: 1}}
		checkDrawn(t, text, lines(t, func(b *strings.Builder) error { return Stats(b, Screen{}, stats, 0, now, now) }))
	}
}

// A command has no exchanges, and a screen without room for them does without.
func TestExchangesGiveWay(t *testing.T) {
	if text := strings.Join(taskOf(t, Screen{}, view(nil), wrote(1, "", "")), "\n"); strings.Contains(text, "FIRST BYTE") {
		t.Errorf("a command: got\n%s", text)
	}
	v := requesting(nil)
	for height, want := range map[int]bool{0: true, 99: true, 20: true, 17: false} {
		text := strings.Join(taskOf(t, Screen{Height: height}, v, answered(1, 503)), "\n")
		if strings.Contains(text, "FIRST BYTE") != want || !strings.Contains(text, "OUTCOME") {
			t.Errorf("height %d: got\n%s", height, text)
		}
	}
}
