package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/testkit"
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
				"exp:1s..1m = : no limit of attempts, backoff exp:1s..1m, jitter phase",
				"sidekiq = sidekiq: 26 attempts, backoff sidekiq, jitter none",
				"deploy/30% = deploy: 8 attempts, backoff exp:2s..2m, jitter 30%",
				"aws = aws: 5 attempts, backoff constant:1s, jitter none",
				"expr:60/n = : no limit of attempts, backoff expr:60/n, jitter phase",
			},
		},
		{
			flags: subjectFlags{Specs: []string{"fib:1s/none", "zizq"}, PolicyFlags: flags.PolicyFlags{Attempts: &four}},
			want: []string{"fib:1s/none = : 4 attempts, backoff fib:1s, jitter none",
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
