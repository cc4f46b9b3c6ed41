package ci

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func githubIn(b *strings.Builder) render.Observer {
	return NewGitHub(b, false, "")
}

func TestWorkflowCommand(t *testing.T) {
	tests := []struct{ command, data, want string }{
		{"endgroup", "", "::endgroup::"},
		{"group", "a: b, c", "::group::a: b, c"},
		{"error title=retry", "100%\r\n::error::x", "::error title=retry::100%25%0D%0A::error::x"},
		{"error", "%0A", "::error::%250A"},
	}
	for _, tt := range tests {
		if got := workflowCommand(tt.command, tt.data); got != tt.want+"\n" {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestGitHubLog(t *testing.T) {
	var b strings.Builder
	play(githubIn(&b), fresh("0123456789abcdef"), func() { b.WriteString("no end of line") }, failing, lastOne)
	want := `::group::retry: attempt 1/5: sh -c 'exit 7'
no end of line
::endgroup::
retry: attempt 1/5: exit 7 after 1s; next at once
::group::retry: attempt 2/5: sh -c 'exit 7'
no end of line
::endgroup::
retry: attempt 2/5: exit 7 after 0s
::error title=retry::sh -c 'exit 7': gave up after 2 attempts in `
	if got := b.String(); !strings.HasPrefix(got, want) || strings.Contains(got, "retry: gave up") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSeverity(t *testing.T) {
	tests := []struct {
		result   runner.Result
		attempts int
		want     string
	}{
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}}, 1, ""},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}}, 2,
			"::notice title=retry::sh -c 'exit 7': succeeded in attempt 2"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted}}, 1,
			"::error title=retry::sh -c 'exit 7': gave up after 1 attempt"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictFailed}}, 1,
			"::error title=retry::sh -c 'exit 7': not retried"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGINT}, 1,
			"::warning title=retry::sh -c 'exit 7': cancelled by SIGINT"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictInterrupted}, Signal: syscall.SIGTERM}, 1,
			"::warning title=retry::sh -c 'exit 7': interrupted by SIGTERM"},
	}
	for _, tt := range tests {
		var b strings.Builder
		tk := fresh("0123456789abcdef")
		tk.AttemptCount = tt.attempts
		githubIn(&b).Finished(tk, tt.result)
		if got := b.String(); !strings.HasPrefix(got, tt.want) || (tt.want == "" && got != "") ||
			strings.Count(got, "\n") > 1 {
			t.Errorf("%s: got %q, want %q", tt.result.Decision.Verdict, got, tt.want)
		}
	}
}

// A warning begins a line of its own also where it comes while a command's last line may be unfinished.
func TestGitHubWarning(t *testing.T) {
	var b strings.Builder
	o, tk := githubIn(&b), fresh("0123456789abcdef")
	o.Warn(errors.New("one\nhint: 100%\x1b[2J"))
	o.Started(tk)
	b.WriteString("half a line")
	o.Warn(errors.New("two"))
	want := "::warning title=retry::one%0Ahint: 100%25\\x1b[2J\n::group::retry: attempt 0/5: sh -c 'exit 7'\nhalf a line\n::warning title=retry::two\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// Of several tasks a command may run at any time.
func TestSharedAnnotationBeginsALine(t *testing.T) {
	var b strings.Builder
	o := render.Shared(githubIn(&b))
	steps := []func(*task.Task){
		func(*task.Task) {}, o.Started, func(t *task.Task) { o.Ended(t, lastOne) },
		func(t *task.Task) { o.Finished(t, runner.Result{Decision: success.Decision}) },
	}
	for i, step := range steps {
		tk := fresh("0123456789abcdef")
		tk.AttemptCount = 1
		step(tk)
		b.Reset()
		b.WriteString("half a line")
		o.Warn(errors.New("x"))
		if got, want := b.String(), "half a line\n::warning title=retry::x\n"; got != want {
			t.Errorf("step %d: got %q, want %q", i, got, want)
		}
	}
}

// After a hook too GitHub has to see a command: a hook's last line may be unfinished as well.
func TestGitHubAfterAHook(t *testing.T) {
	var b strings.Builder
	o, tk := githubIn(&b), fresh("0123456789abcdef")
	tk.Options.OnRetry, tk.Options.OnFailure = "x", "y"
	o.Ended(tk, failing)
	b.WriteString("half a line")
	o.Started(tk)
	o.Ended(tk, lastOne)
	o.Finished(tk, runner.Result{Decision: lastOne.Decision})
	b.WriteString("half a line")
	o.Warn(errors.New("hook failed"))
	for _, want := range []string{"half a line\n::group::", "after 0s\n::error", "half a line\n::warning"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q, got\n%s", want, b.String())
		}
	}
}

// What outgrows its limit is told from another goroutine.
func TestGitHubWarnsFromAnywhere(t *testing.T) {
	o, tk := NewGitHub(io.Discard, false, ""), fresh("0123456789abcdef")
	var group sync.WaitGroup
	group.Go(func() { o.Warn(errors.New("x")) })
	o.Started(tk)
	o.Ended(tk, lastOne)
	o.Finished(tk, runner.Result{Decision: lastOne.Decision})
	group.Wait()
}

// A command line and a message are data, whatever they are.
func TestGitHubIsEscaped(t *testing.T) {
	var b strings.Builder
	tk := fresh("0123456789abcdef")
	tk.Command = []string{"a\n::error::b", "\x1b[2J"}
	play(githubIn(&b), tk, func() {}, task.Attempt{
		Outcome:  task.Outcome{Error: task.ErrorNotFound, Message: "a\n::error::b: command not found"},
		Decision: task.Decision{Verdict: task.VerdictFailed},
	})
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "::error::") || strings.Contains(line, "\x1b") {
			t.Errorf("got the line %q in\n%s", line, b.String())
		}
	}
}

// reset is the only attempt of a request whose reply never came.
var reset = task.Attempt{
	StartedAt: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC),
	Outcome: task.Outcome{
		Exit: 22, Message: "status 503 Service Unavailable", Duration: 1300 * time.Millisecond,
		Reply: &task.Reply{Status: 503, Written: 1},
	},
	Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonAmbiguous},
}

func TestCIOfHTTP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	var github, gitlab strings.Builder
	for o, b := range map[render.Observer]*strings.Builder{NewGitHub(&github, false, path): &github,
		NewGitLab(&gitlab, false): &gitlab} {
		tk := fresh("5b9a39db")
		tk.Number, tk.Kind, tk.Command, tk.Target = 1, request.Kind, nil,
			&request.Request{Method: "POST", URL: "https://ann:hunter2@h/orders"}
		play(o, tk, func() {}, reset)
		if got, want := b.String(), "retry: attempt 1/5: POST https://ann:***@h/orders\n"; !strings.Contains(got, want) {
			t.Errorf("got\n%s, want %q", got, want)
		}
		if strings.Contains(b.String(), "hunter2") {
			t.Errorf("got a secret:\n%s", b.String())
		}
	}
	const annotation = "::error title=retry::POST https://ann:***@h/orders: failed, ambiguous: POST may have taken effect, and is not safe to repeat " +
		"(retry status 5b9a39db)%0Ahint: look at the server"
	if got := github.String(); !strings.Contains(got, annotation) {
		t.Errorf("got\n%s, want %q", got, annotation)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### `POST https://ann:***@h/orders`: failed, ambiguous: ",
		" | 1.3s | 503 Service Unavailable | failed |\n"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("got\n%s, want %q", page, want)
		}
	}
	if strings.Contains(string(page), "hint:") || strings.Contains(string(page), "hunter2") {
		t.Errorf("got hints or a secret in a heading:\n%s", page)
	}
}
