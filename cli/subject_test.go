package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

func TestCutJitter(t *testing.T) {
	for spec, want := range map[string][2]string{
		"exp:1s..1m":           {"exp:1s..1m", ""},
		"exp:1s..1m/full":      {"exp:1s..1m", "full"},
		"zizq/nope":            {"zizq", "nope"},
		"deploy/add:1s..5s":    {"deploy", "add:1s..5s"},
		"expr:60/n":            {"expr:60/n", ""},
		"expr:60/n/30%":        {"expr:60/n", "30%"},
		"expr:60 / 2/add:30s":  {"expr:60 / 2", "add:30s"},
		"expr:60/":             {"expr:60/", ""},
		"expr:60/(n+1)..1h/no": {"expr:60/(n+1)..1h/no", ""},
		"list:1s,5s/±30%":      {"list:1s,5s", "±30%"},
	} {
		if name, jitter := cutJitter(spec); name != want[0] || jitter != want[1] {
			t.Errorf("%s: got %q and %q, want %q", spec, name, jitter, want)
		}
	}
}

const subjectsFile = `[policy.deploy]
attempts = 8
backoff = "exp:2s..2m"
[policy.aws]
backoff = "constant:1s"
jitter = "none"
[policy.broken]
attempts = "x"
`

// subjectsOf returns the subjects as lines. An environment is a list of words.
func subjectsOf(t *testing.T, environ string, f *subjectFlags) (lines []string, err error) {
	t.Helper()
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, "config.toml"), subjectsFile)
	p := testProcess(append(strings.Fields(environ), "RETRY_STATE_DIR="+dir,
		"RETRY_CONFIG="+filepath.Join(dir, "config.toml"))...)
	subjects, err := p.subjects(f)
	for _, s := range subjects {
		lines = append(lines, fmt.Sprintf("%s = %s", s.Label, render.Policy(&s.Policy)))
	}
	return lines, err
}

// Every SPEC is a curve or a policy of any layer, with its attempts and its jitter unless another is asked for.
func TestSubjects(t *testing.T) {
	four, deploy := flags.Count(4), "deploy"
	for _, tt := range []struct {
		environ string
		flags   subjectFlags
		want    []string
	}{
		{flags: subjectFlags{}, want: []string{"default = default: 5 attempts, backoff exp:1s..1m, jitter phase"}},
		{
			environ: "RETRY_POLICY=zizq RETRY_ATTEMPTS=7", flags: subjectFlags{},
			want: []string{"zizq = zizq: 7 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		},
		{
			flags: subjectFlags{PolicyFlags: flags.PolicyFlags{Policy: &deploy}},
			want:  []string{"deploy = deploy: 8 attempts, backoff exp:2s..2m, jitter phase"},
		},
		{
			environ: "RETRY_ATTEMPTS=7 RETRY_JITTER=full",
			flags:   subjectFlags{Specs: []string{"exp:1s..1m", "sidekiq", "deploy/30%", "aws", "expr:60/n"}},
			want: []string{
				"exp:1s..1m = inline: no limit of attempts, backoff exp:1s..1m, jitter phase",
				"sidekiq = sidekiq: 26 attempts, backoff sidekiq, jitter none",
				"deploy/30% = deploy: 8 attempts, backoff exp:2s..2m, jitter 30%",
				"aws = aws: 5 attempts, backoff constant:1s, jitter none",
				"expr:60/n = inline: no limit of attempts, backoff expr:60/n, jitter phase",
			},
		},
		{
			flags: subjectFlags{Specs: []string{"fib:1s/none", "zizq"}, PolicyFlags: flags.PolicyFlags{Attempts: &four}},
			want: []string{"fib:1s/none = inline: 4 attempts, backoff fib:1s, jitter none",
				"zizq = zizq: 4 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		},
	} {
		if got, err := subjectsOf(t, tt.environ, &tt.flags); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s %q: %v\ngot  %q\nwant %q", tt.environ, tt.flags.Specs, err, got, tt.want)
		}
	}
}

func TestSubjectsRefused(t *testing.T) {
	full := "full"
	for spec, wants := range map[string][]string{
		"exp:":             {`spec "exp:": parse backoff "exp:": `},
		"exp:1s/fulll":     {`spec "exp:1s/fulll": parse jitter "fulll"`, "did you mean full?"},
		"exp:1s/":          {"no jitter follows the /\nhint: "},
		"sidekiq/phase":    {`spec "sidekiq/phase": jitter "phase" does not fit backoff "sidekiq"`},
		"deplo":            {`spec "deplo": unknown policy "deplo"`, "did you mean deploy?"},
		"exponential":      {"hint: write exp, or exp:FIRST..MAX", "hint: the policies are aws, broken, default, deploy"},
		"poly":             {"did you mean poly:15s+n^4..1h?"},
		"":                 {`spec "": it is empty`},
		"broken":           {"config.toml:8: policy.broken.attempts: "},
		"expr:60/m":        {`spec "expr:60/m": parse backoff "expr:60/m"`},
		"buckets:3..5/30%": {"buckets takes no cap"},
	} {
		_, err := subjectsOf(t, "", &subjectFlags{Specs: []string{"zizq", spec}})
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s:\ngot  %v\nwant %s", spec, err, want)
			}
		}
	}
	_, err := subjectsOf(t, "", &subjectFlags{Specs: []string{"zizq"}, PolicyFlags: flags.PolicyFlags{Jitter: &full}})
	if err == nil || !strings.Contains(err.Error(), "--jitter and a SPEC exclude each other\nhint: ") {
		t.Errorf("got %v, want that the flag and a SPEC exclude each other", err)
	}
}

func TestWantedStatus(t *testing.T) {
	for _, tt := range []struct {
		text string
		want wantedStatus
	}{{text: "FAILED", want: "FAILED"}, {text: "in_flight", want: "IN_FLIGHT"}, {text: " Interrupted ", want: interrupted},
		{text: "gave-up", want: "EXHAUSTED"}, {text: "gave up", want: "EXHAUSTED"}, {text: "fail", want: unsuccessful},
		{text: "running", want: running}, {text: "waiting", want: waiting}} {
		var s wantedStatus
		if err := s.UnmarshalText([]byte(tt.text)); err != nil || s != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.text, s, err, tt.want)
		}
	}
	for _, text := range []string{"", "failing", "dead", "*"} {
		var s wantedStatus
		err := s.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), ""+
			"\nhint: give running, waiting, interrupted, succeeded, gave-up, failed, cancelled or fail") {
			t.Errorf("%q: got %v, want an error that lists the statuses", text, err)
		}
	}
}

// INTERRUPTED is not a stored status: the query reads all unfinished tasks, and the filter keeps those without an
// owner.
func TestFilterPasses(t *testing.T) {
	view := func(s task.Status, interrupted bool) render.TaskView {
		return render.TaskView{Task: &task.Task{Status: s}, Interrupted: interrupted}
	}
	tests := []struct {
		name   string
		wanted []wantedStatus
		view   render.TaskView
		want   bool
	}{
		{name: "no filter", view: view(task.Failed, false), want: true},
		{name: "it", wanted: []wantedStatus{"FAILED"}, view: view(task.Failed, false), want: true},
		{name: "another", wanted: []wantedStatus{"FAILED"}, view: view(task.Pending, true)},
		{name: "interrupted", wanted: []wantedStatus{interrupted}, view: view(task.Pending, true), want: true},
		{name: "not interrupted", wanted: []wantedStatus{interrupted}, view: view(task.InFlight, false)},
		{name: "either", wanted: []wantedStatus{interrupted, "FAILED"}, view: view(task.Failed, false), want: true},
		{name: "running", wanted: []wantedStatus{running}, view: view(task.InFlight, false), want: true},
		{name: "running no more", wanted: []wantedStatus{running}, view: view(task.InFlight, true)},
		{name: "fail", wanted: []wantedStatus{unsuccessful}, view: view(task.Exhausted, false), want: true},
		{name: "no failure", wanted: []wantedStatus{unsuccessful}, view: view(task.Cancelled, false)},
		{
			name: "the stored status of one that is interrupted", wanted: []wantedStatus{"IN_FLIGHT"},
			view: view(task.InFlight, true), want: true,
		},
	}
	for _, tt := range tests {
		flags := filterFlags{Status: tt.wanted}
		if got := flags.passes(tt.view); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		stored := flags.stored(7)
		if asks := len(tt.wanted) == 0 || len(stored.Statuses) > 0; !asks ||
			(stored.Limit == 0) != (len(tt.wanted) > 0 && (tt.wanted[0] == interrupted || tt.wanted[0] == running)) {
			t.Errorf("%s: got the query %+v", tt.name, stored)
		}
	}
}

func TestPruneRetention(t *testing.T) {
	now := time.Now()
	hour, zero := flags.Duration(time.Hour), flags.Duration(0)
	tests := map[string]struct {
		command pruneCommand
		want    time.Time
	}{
		"by default": {command: pruneCommand{}, want: now.Add(-30 * 24 * time.Hour)},
		"an age":     {command: pruneCommand{OlderThan: &hour}, want: now.Add(-time.Hour)},
		"any age":    {command: pruneCommand{OlderThan: &zero}, want: time.Time{}},
	}
	for name, tt := range tests {
		got, err := tt.command.retention(func(string) string { return "" }, now)
		if err != nil || !got.Before.Equal(tt.want) || got.Rows != pruneRows || len(got.Statuses) > 0 {
			t.Errorf("%s: got %+v, %v, want tasks before %v", name, got, err, tt.want)
		}
	}
}

// A file that is there keeps its mode, also behind a link, and nothing stands beside it that a collector would
// take for one.
func TestWriteTextfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "retry.prom")
	testkit.Must(t, os.WriteFile(path, []byte("old, and longer than the new one"), 0o600))
	before, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Must(t, os.Symlink("retry.prom", filepath.Join(dir, "link.prom")))
	testkit.Must(t, writeTextfile(filepath.Join(dir, "link.prom"), []byte("new")))
	after, err := os.Stat(path)
	testkit.Must(t, err)
	if testkit.Contents(t, path) != "new" || after.Mode() != fs.FileMode(0o600) || !os.SameFile(before, after) {
		t.Errorf("got %q with mode %v, want the new text in the file that the link leads to, with mode 0600",
			testkit.Contents(t, path), after.Mode())
	}
	if got := testkit.Names(t, dir); !slices.Equal(got, []string{"link.prom", "retry.prom"}) {
		t.Errorf("got the files %q, want the link and its target alone", got)
	}
}
