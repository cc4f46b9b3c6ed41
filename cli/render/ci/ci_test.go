package ci

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func TestDetect(t *testing.T) {
	tests := []struct {
		flag    Service
		environ string
		want    Service
	}{
		{Auto, "", None},
		{Auto, "GITHUB_ACTIONS=true", GitHub},
		{Auto, "GITLAB_CI=true", GitLab},
		{Auto, "GITHUB_ACTIONS=", None},
		{Auto, "CI=true", None},
		{None, "GITHUB_ACTIONS=true", None},
		{GitLab, "GITHUB_ACTIONS=true", GitLab},
		{GitHub, "", GitHub},
	}
	for _, tt := range tests {
		name, value, _ := strings.Cut(tt.environ, "=")
		getenv := func(asked string) string {
			if asked != name {
				return ""
			}
			return value
		}
		if got := tt.flag.Detect(getenv); got != tt.want {
			t.Errorf("%s with %q is %s, want %s", tt.flag, tt.environ, got, tt.want)
		}
	}
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

// The ends of an attempt that the runs of these tests know.
var (
	failing = task.Attempt{StartedAt: noon, Outcome: task.Outcome{Exit: 7, Duration: time.Second},
		Decision: task.Decision{Verdict: task.VerdictRetry}}
	lastOne = task.Attempt{StartedAt: noon, Outcome: task.Outcome{Exit: 7},
		Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts}}
	success  = task.Attempt{StartedAt: noon, Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	cutShort = task.Attempt{StartedAt: noon, Outcome: task.Outcome{Exit: 143, Stop: syscall.SIGTERM},
		Decision: task.Decision{Verdict: task.VerdictInterrupted}}
)

// fresh is a task that has not begun.
func fresh(id string) *task.Task {
	return &task.Task{
		ID: id, Kind: task.KindCommand, Command: []string{"sh", "-c", "exit 7"}, Policy: task.DefaultPolicy(),
		CreatedAt: time.Now(),
		Status:    task.Pending,
	}
}

// play shows an observer a whole run as the Runner does; between Started and Ended the command writes its output.
func play(o render.Observer, t *task.Task, command func(), attempts ...task.Attempt) {
	r := runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}, Signal: syscall.SIGINT}
	for _, a := range attempts {
		t.AttemptCount++
		a.Number = t.AttemptCount
		o.Started(t)
		command()
		t.History.Counted++
		o.Ended(t, a)
		r = runner.Result{Decision: a.Decision, Outcome: a.Outcome, Signal: a.Outcome.Stop}
	}
	o.Finished(t, r)
}

// Whatever happens, a group that was begun is ended, once, before retry's own lines go on.
func TestGroupsAreClosed(t *testing.T) {
	runs := map[string][]task.Attempt{
		"nothing ran": nil, "success": {success}, "rescue": {failing, success}, "exhausted": {failing, lastOne},
		"interrupted": {failing, cutShort},
	}
	services := map[string]func(*strings.Builder) render.Observer{"::group::": githubIn, "section_start:": gitlabIn}
	for begin, service := range services {
		for name, attempts := range runs {
			var b strings.Builder
			play(service(&b), fresh("0123456789abcdef"), func() { b.WriteString("inside\nhalf a line") }, attempts...)
			open, groups := false, 0
			for line := range strings.Lines(b.String()) {
				switch {
				case strings.Contains(line, begin):
					if open {
						t.Errorf("%s: got a group in a group:\n%s", name, b.String())
					}
					open = true
					groups++
				case strings.HasPrefix(line, "::endgroup::"), strings.Contains(line, "section_end:"):
					if !open {
						t.Errorf("%s: got an end without a group:\n%s", name, b.String())
					}
					open = false
				case open != (strings.HasPrefix(line, "inside") || strings.HasPrefix(line, "half") || line == "\n"):
					t.Errorf("%s: got %q on the wrong side of a group:\n%s", name, line, b.String())
				}
			}
			if open || groups != len(attempts) {
				t.Errorf("%s: got %d groups for %d attempts, the last open: %v\n%s", name, groups, len(attempts), open, b.String())
			}
		}
	}
}

// A run that ends without an end of its attempt leaves no group open either.
func TestFinishedClosesAGroup(t *testing.T) {
	for end, service := range map[string]func(*strings.Builder) render.Observer{"\n::endgroup::\n": githubIn,
		"section_end:": gitlabIn} {
		var b strings.Builder
		o, tk := service(&b), fresh("0123456789abcdef")
		o.Started(tk)
		o.Finished(tk, runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}})
		if at := strings.Index(b.String(), end); at < 0 || at > strings.Index(b.String(), "cancelled") {
			t.Errorf("want %q at the end, got %q", end, b.String())
		}
	}
}

// Tasks side by side have no groups, but each line and each annotation names its task.
func TestSharedCI(t *testing.T) {
	for name, service := range map[string]func(*strings.Builder) render.Observer{"github": githubIn, "gitlab": gitlabIn} {
		var b strings.Builder
		o := render.Shared(service(&b))
		one, two := fresh("aaaaaaaa"), fresh("bbbbbbbb")
		o.Started(one)
		o.Started(two)
		o.Warn(errors.New("beware"))
		play(o, one, func() {}, failing, lastOne)
		play(o, two, func() {}, failing, success)
		got := b.String()
		for _, never := range []string{"::group", "::endgroup", "section"} {
			if strings.Contains(got, never) {
				t.Errorf("%s: %q in\n%s", name, never, got)
			}
		}
		for _, id := range []string{"aaaaaaaa: ", "bbbbbbbb: "} {
			if n := strings.Count(got, id); n < 2 {
				t.Errorf("%s: %d lines of task %s in\n%s", name, n, id, got)
			}
		}
	}
}

func TestNoCountdownInCI(t *testing.T) {
	for _, o := range []render.Observer{NewGitHub(nil, false, ""), NewGitHub(nil, false, "summary"),
		NewGitLab(nil, false)} {
		if got := o.Waiting(fresh("x"), time.Minute); got < time.Hour {
			t.Errorf("%T wants to be called again after %v", o, got)
		}
	}
}

func TestShortened(t *testing.T) {
	long := shortened(strings.Repeat("日本", maxShown))
	if !strings.HasSuffix(long, "…") || len(slices.Collect(strings.SplitSeq(long, ""))) > maxShown {
		t.Errorf("got %d bytes: %s", len(long), long)
	}
	tk := fresh("x")
	tk.Command = []string{strings.Repeat("x", 1000)}
	if got := heading(tk); len(got) > maxShown+50 {
		t.Errorf("the heading has %d bytes", len(got))
	}
	if got := shortened("sh -c 'exit 7'"); got != "sh -c 'exit 7'" {
		t.Errorf("cut a short one: %q", got)
	}
}

func gitlabIn(b *strings.Builder) render.Observer {
	return NewGitLab(b, false)
}

// The first attempt and the last that the policy allows are open, those between are collapsed.
func TestGitLabLog(t *testing.T) {
	var b strings.Builder
	tk := fresh("01a1fb79-5735-7565-b3a1-977a5b9a39db")
	tk.Policy.Attempts = 3
	play(gitlabIn(&b), tk, func() { b.WriteString("output\n") }, failing, failing, lastOne)
	section := func(number, options string) string {
		return `\x1b\[0Ksection_start:\d{10}:retry_5b9a39db_` + number + options + `\r\x1b\[0Kretry: attempt ` + number + `/3: sh -c 'exit 7'
output
\x1b\[0Ksection_end:\d{10}:retry_5b9a39db_` + number + `\r\x1b\[0K
`
	}
	want := regexp.MustCompile("^" + section("1", "") + "retry: attempt 1/3: exit 7 after 1s; next at once\n" +
		section("2", `\[collapsed=true\]`) + "retry: attempt 2/3: exit 7 after 1s; next at once\n" +
		section("3", "") + "retry: attempt 3/3: exit 7 after 0s\nretry: gave up after 3 attempts in .*: exit 7\n$")
	if got := b.String(); !want.MatchString(got) {
		t.Errorf("got\n%q\nwant\n%s", got, want)
	}
}

// Without a limit no attempt is known to be the last, and the names differ all the same.
func TestSectionWithoutALimit(t *testing.T) {
	tk := fresh("01a1fb79-5735-7565-b3a1-977a5b9a39db")
	tk.Policy.Attempts = 0
	names := map[string]bool{}
	for tk.AttemptCount = 1; tk.AttemptCount < 100; tk.AttemptCount++ {
		name := sectionName(tk)
		if names[name] || !regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`).MatchString(name) {
			t.Errorf("got name %q", name)
		}
		names[name] = true
		if open := sectionOptions(tk) == ""; open != (tk.AttemptCount == 1) {
			t.Errorf("attempt %d: got open %v", tk.AttemptCount, open)
		}
	}
}

func TestGitLabIsEscaped(t *testing.T) {
	var b strings.Builder
	tk := fresh("0123456789abcdef")
	tk.Command = []string{"x\n\x1b[0Ksection_end:1:retry_89abcdef_1\r\x1b[0K"}
	play(gitlabIn(&b), tk, func() {}, lastOne)
	if got := b.String(); strings.Count(got, "\r") != 2 || strings.Count(got, "\x1b") != 4 {
		t.Errorf("got %q", got)
	}
}
