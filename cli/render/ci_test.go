package render

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func TestDetect(t *testing.T) {
	tests := []struct {
		flag    CI
		environ string
		want    CI
	}{
		{CIAuto, "", CINone},
		{CIAuto, "GITHUB_ACTIONS=true", CIGitHub},
		{CIAuto, "GITLAB_CI=true", CIGitLab},
		{CIAuto, "GITHUB_ACTIONS=", CINone},
		{CIAuto, "CI=true", CINone},
		{CINone, "GITHUB_ACTIONS=true", CINone},
		{CIGitLab, "GITHUB_ACTIONS=true", CIGitLab},
		{CIGitHub, "", CIGitHub},
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

// The ends of an attempt that the runs of these tests know.
var (
	failing  = task.Attempt{StartedAt: now, Outcome: task.Outcome{Exit: 7, Duration: time.Second}, Decision: task.Decision{Verdict: task.VerdictRetry}}
	lastOne  = task.Attempt{StartedAt: now, Outcome: task.Outcome{Exit: 7}, Decision: task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts}}
	success  = task.Attempt{StartedAt: now, Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	cutShort = task.Attempt{StartedAt: now, Outcome: task.Outcome{Exit: 143, Stop: syscall.SIGTERM}, Decision: task.Decision{Verdict: task.VerdictInterrupted}}
)

// fresh is a task that has not begun.
func fresh(id string) *task.Task {
	return view(func(v *TaskView) { v.ID, v.AttemptCount, v.CreatedAt = id, 0, time.Now() }).Task
}

// play shows an observer a whole run as the Runner does; between Started and Ended the command writes its output.
func play(o Observer, t *task.Task, command func(), attempts ...task.Attempt) {
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
		"nothing ran": nil, "success": {success}, "rescue": {failing, success}, "exhausted": {failing, lastOne}, "interrupted": {failing, cutShort},
	}
	services := map[string]func(*strings.Builder) Observer{"::group::": githubIn, "section_start:": gitlabIn}
	for begin, service := range services {
		for name, attempts := range runs {
			var b strings.Builder
			play(service(&b), fresh("0123456789abcdef"), func() { b.WriteString("inside\nhalf a line") }, attempts...)
			open, groups := false, 0
			for line := range strings.Lines(b.String()) {
				switch {
				case strings.Contains(line, begin):
					if open {
						t.Errorf("%s: a group in a group:\n%s", name, b.String())
					}
					open = true
					groups++
				case strings.HasPrefix(line, "::endgroup::"), strings.Contains(line, "section_end:"):
					if !open {
						t.Errorf("%s: an end without a group:\n%s", name, b.String())
					}
					open = false
				case open != (strings.HasPrefix(line, "inside") || strings.HasPrefix(line, "half") || line == "\n"):
					t.Errorf("%s: %q is on the wrong side:\n%s", name, line, b.String())
				}
			}
			if open || groups != len(attempts) {
				t.Errorf("%s: %d groups for %d attempts, the last open: %v\n%s", name, groups, len(attempts), open, b.String())
			}
		}
	}
}

// A run that ends without an end of its attempt leaves no group open either.
func TestFinishedClosesAGroup(t *testing.T) {
	for end, service := range map[string]func(*strings.Builder) Observer{"\n::endgroup::\n": githubIn, "section_end:": gitlabIn} {
		var b strings.Builder
		o, tk := service(&b), fresh("0123456789abcdef")
		o.Started(tk)
		o.Finished(tk, runner.Result{Decision: task.Decision{Verdict: task.VerdictCancelled}})
		if at := strings.Index(b.String(), end); at < 0 || at > strings.Index(b.String(), "cancelled") {
			t.Errorf("no %q in %q", end, b.String())
		}
	}
}

// Tasks side by side have no groups, but each line and each annotation names its task.
func TestSharedCI(t *testing.T) {
	for name, service := range map[string]func(*strings.Builder) Observer{"github": githubIn, "gitlab": gitlabIn} {
		var b strings.Builder
		o := Shared(service(&b))
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
	for _, o := range []Observer{NewGitHub(nil, false, ""), NewGitHub(nil, false, "summary"), NewGitLab(nil, false)} {
		if got := o.Waiting(fresh("x"), time.Minute); got != rarely {
			t.Errorf("%T wants to be called again after %v", o, got)
		}
	}
}

func TestShortened(t *testing.T) {
	long := shortened(strings.Repeat("日本", maxShown))
	if !strings.HasSuffix(long, "…") || len(slices.Collect(strings.SplitSeq(long, ""))) > maxShown {
		t.Errorf("%d bytes: %s", len(long), long)
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
