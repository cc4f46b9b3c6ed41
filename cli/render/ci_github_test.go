package render

import (
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func githubIn(b *strings.Builder) Observer {
	return newGitHub(&Lines{w: b}, b, "")
}

func TestWorkflowCommand(t *testing.T) {
	tests := []struct {
		name, data string
		properties []string
		want       string
	}{
		{"endgroup", "", nil, "::endgroup::"},
		{"group", "a: b, c", nil, "::group::a: b, c"},
		{"error", "100%\r\n::error::x", []string{"title", "retry"}, "::error title=retry::100%25%0D%0A::error::x"},
		{"error", "%0A", nil, "::error::%250A"},
		{"notice", "x", []string{"title", "a:b,c%\r\n", "file", "y"}, "::notice title=a%3Ab%2Cc%25%0D%0A,file=y::x"},
	}
	for _, tt := range tests {
		if got := workflowCommand(tt.name, tt.data, tt.properties...); got != tt.want+"\n" {
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
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictSucceeded}}, 2, "::notice title=retry::sh -c 'exit 7': succeeded in attempt 2"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictExhausted}}, 1, "::error title=retry::sh -c 'exit 7': gave up after 1 attempt"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictFailed}}, 1, "::error title=retry::sh -c 'exit 7': not retried"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGINT}, 1, "::warning title=retry::sh -c 'exit 7': cancelled by SIGINT"},
		{runner.Result{Decision: task.Decision{Verdict: task.VerdictInterrupted}, Signal: syscall.SIGTERM}, 1, "::warning title=retry::sh -c 'exit 7': interrupted by SIGTERM"},
	}
	for _, tt := range tests {
		var b strings.Builder
		tk := fresh("0123456789abcdef")
		tk.AttemptCount = tt.attempts
		githubIn(&b).Finished(tk, tt.result)
		if got := b.String(); !strings.HasPrefix(got, tt.want) || (tt.want == "" && got != "") || strings.Count(got, "\n") > 1 {
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
	o := Shared(githubIn(&b))
	steps := []func(*task.Task){
		func(*task.Task) {}, o.Started, func(t *task.Task) { o.Ended(t, lastOne) }, func(t *task.Task) { o.Finished(t, runner.Result{Decision: success.Decision}) },
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
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// What outgrows its limit is told from another goroutine.
func TestGitHubWarnsFromAnywhere(t *testing.T) {
	o, tk := newGitHub(&Lines{w: io.Discard}, io.Discard, ""), fresh("0123456789abcdef")
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
			t.Errorf("%q in\n%s", line, b.String())
		}
	}
}
