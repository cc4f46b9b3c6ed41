package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

// shownTo returns what show prints of the policy that flags make, and that policy.
func shownTo(t *testing.T, args ...string) (string, task.Policy) {
	t.Helper()
	p := testProcess()
	command := &policyShowCommand{}
	if _, err := newTestParser(t, "policy show", command).Parse(nil, args); err != nil {
		t.Fatal(err)
	}
	choice, err := policies.Choose(&command.PolicyFlags, &command.ConfigFlag, p.Getenv, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	policy, err := choice.Resolve(noon)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := render.PolicyTOML(&b, render.Screen{}, choice.Explain(&policy)); err != nil {
		t.Fatal(err)
	}
	return b.String(), policy
}

// What show prints is a config file with the same policy.
func TestWhatIsShownCanBePasted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	text := "[policy.\"a 'b\\\" \\\\ ü\"]\n[[policy.\"a 'b\\\" \\\\ ü\".rule]]\nwhen = 'stderr matches \"a\\\\.b\"'\nbackoff = 'aws'\n[policy.plain]\nattempts = 0\nkill-after = 0\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		nil,
		{"--policy=sidekiq"},
		{"--config=" + path, "--policy=plain"},
		{"--config=" + path, `--policy=a 'b" \ ü`, "--retry-on=exit == 75 and\nstderr matches \"x'y\"", "--stop-on=1,2",
			"--stop-on=any", "--success-on=0"},
		{"--attempts=0", "--backoff=expr:15 + n^4", "--jitter=add:1s..5s", "--timeout=1.5", "--kill-after=90s",
			"--budget=2d3h", "--reset-after=1ms", "--consecutive=7"},
		{"--backoff=list:1s,2s,1m", "--jitter=±12.5%", "--deadline=2026-03-04T13:00:00.001Z"},
	} {
		shown, want := shownTo(t, args...)
		pasted, mistakes, err := policies.ReadFrom("c.toml", strings.NewReader(shown))
		if err != nil || mistakes != nil {
			t.Fatalf("%q: %v, %v\n%s", args, err, mistakes, shown)
		}
		got, mistakes := pasted.Policy(want.Name)
		if render.Policy(&got) != render.Policy(&want) || got.KillAfter != want.KillAfter || mistakes != nil {
			t.Errorf("%q\ngot  %s, %v\nwant %s\nfrom\n%s", args, render.Policy(&got), mistakes, render.Policy(&want), shown)
		}
	}
}

// Each value names what gave it, and a jitter that follows from a backoff names that.
func TestOrigins(t *testing.T) {
	tests := []struct{ args, key, want string }{
		{key: "attempts", want: "built in"},
		{args: "--attempts=3", key: "attempts", want: "--attempts"},
		{args: "--retries=3", key: "attempts", want: "--retries"},
		{args: "--backoff=zizq", key: "jitter", want: "--backoff"},
		{args: "--backoff=exp:2s", key: "jitter", want: "built in"},
		{args: "--backoff=exp:2s --jitter=full", key: "jitter", want: "--jitter"},
		{args: "--budget=1h", key: "budget", want: "--budget"},
		{args: "--budget=3h --deadline=2026-03-04T13:00:00Z", key: "budget", want: "--deadline"},
		{args: "--budget=3m --deadline=2026-03-04T13:00:00Z", key: "budget", want: "--budget"},
	}
	for _, tt := range tests {
		shown, _ := shownTo(t, strings.Fields(tt.args)...)
		for line := range strings.Lines(shown) {
			if strings.HasPrefix(line, tt.key+" ") && !strings.HasSuffix(line, "# "+tt.want+"\n") {
				t.Errorf("%s: got %s, want %s", tt.args, line, tt.want)
			}
		}
		if !strings.Contains(shown, "\n"+tt.key+" ") {
			t.Errorf("%s: got\n%s\nwant a line of %s", tt.args, shown, tt.key)
		}
	}
}
