package cli

import (
	"cmp"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/task"
)

func testProcess(environ ...string) *Process {
	return &Process{Host: session.Host{Environ: environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}}
}

// parsedOptions returns the options that flags make.
func parsedOptions(t *testing.T, args string) (task.Options, error) {
	t.Helper()
	command, err := parseRun(t, strings.Fields(args)...)
	options, wrong := command.HookFlags.Options()
	return command.Over(options), cmp.Or(err, wrong)
}

func seed(n uint64) *uint64 { return &n }

// Defaults stay empty, so that a plain command has no options to store and to show.
func TestOptions(t *testing.T) {
	tests := []struct {
		args string
		want task.Options
	}{
		{want: task.Options{}},
		{args: "--stdin auto --output stream --capture none", want: task.Options{}},
		{args: "--stdin replay", want: task.Options{Stdin: task.StdinReplay}},
		{args: "--stdin=null", want: task.Options{Stdin: task.StdinNull}},
		{args: "--output final", want: task.Options{Output: task.OutputFinal, OutputLimit: 2 << 30}},
		{args: "--output final --output-limit 0", want: task.Options{Output: task.OutputFinal}},
		{
			args: "--output final --output-limit 512M",
			want: task.Options{Output: task.OutputFinal, OutputLimit: 512 << 20},
		},
		{args: "--output success", want: task.Options{Output: task.OutputSuccess}}, // the limit is final's alone
		{args: "--output failure --output-limit 5", want: task.Options{Output: task.OutputFailure}},
		{args: "--output-limit 5", want: task.Options{}},
		{args: "--capture stderr", want: task.Options{Capture: task.CaptureStderr}},
		{args: "--capture both", want: task.Options{Capture: task.CaptureBoth}},
		{
			args: "--on-start s --on-retry a --on-success b --on-failure c --hook-timeout 5m",
			want: task.Options{
				OnStart: "s", OnRetry: "a", OnSuccess: "b", OnFailure: "c", HookTimeout: 5 * time.Minute,
			},
		},
		{args: "--on-failure=x,y;z", want: task.Options{OnFailure: "x,y;z"}},
		{args: "--seed 0", want: task.Options{Seed: seed(0)}},
		{args: "--seed 18446744073709551615", want: task.Options{Seed: seed(math.MaxUint64)}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			if got, err := parsedOptions(t, tt.args); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	tests := []struct{ args, want string }{
		{args: "--stdin sometimes", want: "--stdin"},
		{args: "--output last", want: "--output"},
		{args: "--capture stdout", want: "--capture"},
		{args: "--seed -1", want: "--seed"},
		{args: "--seed x", want: "--seed"},
		{args: "--seed 18446744073709551616", want: "--seed"},
		{args: "--seed 1.5", want: "--seed"},
		{args: "--output-limit much", want: `--output-limit: invalid size "much"`},
		{args: "--output-limit=-1", want: `--output-limit: invalid size "-1"`},
	}
	for _, tt := range tests {
		_, err := parsedOptions(t, tt.args)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%s: got %v, want %q and a hint", tt.args, err, tt.want)
		}
	}
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// resolved returns the policy that an environment and flags make at noon.
func resolved(t *testing.T, environ, args string) (task.Policy, error) {
	t.Helper()
	p := testProcess(strings.Fields(environ)...)
	command, err := parseRun(t, strings.Fields(args)...)
	if err != nil {
		return task.Policy{}, err
	}
	choice, err := policies.Choose(&command.PolicyFlags, &command.ConfigFlag, p.Getenv, func(err error) { t.Error(err) })
	if err != nil {
		return task.Policy{}, err
	}
	return choice.Resolve(noon)
}

func TestResolve(t *testing.T) {
	tests := []struct{ environ, args, want string }{
		{want: "default: 5 attempts, backoff exp:1s..1m, jitter phase"},
		{args: "-p zizq", want: "zizq: 26 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{args: "-b zizq", want: "default: 5 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{args: "-b buckets:3", want: "default: 5 attempts, backoff buckets:3, jitter none"},
		{args: "-p zizq -b exp:1s", want: "zizq: 26 attempts, backoff exp:1s, jitter add:30s*n"},
		{args: "--retries 3", want: "default: 4 attempts, backoff exp:1s..1m, jitter phase"},
		{args: "-n 0", want: "default: no limit of attempts, backoff exp:1s..1m, jitter phase"},
		{
			args: "-t 30 -B 1h30m --reset-after 2d",
			want: "default: 5 attempts, backoff exp:1s..1m, jitter phase, timeout 30s, budget 1h30m, reset after 2d",
		},
		{
			args: "--retry-on 1,2 --retry-on 75 --success-on 0,3",
			want: "default: 5 attempts, backoff exp:1s..1m, jitter phase, success on 0,3, retry on 1,2, retry on 75",
		},
		{environ: "RETRY_ATTEMPTS=2", want: "default: 2 attempts, backoff exp:1s..1m, jitter phase"},
		{environ: "RETRY_ATTEMPTS=2", args: "-n 3", want: "default: 3 attempts, backoff exp:1s..1m, jitter phase"},
		{
			environ: "RETRY_ATTEMPTS=2", args: "--retries 3",
			want: "default: 4 attempts, backoff exp:1s..1m, jitter phase",
		},
		{environ: "RETRY_RETRIES=2", args: "-n 9", want: "default: 9 attempts, backoff exp:1s..1m, jitter phase"},
		{environ: "RETRY_POLICY=aws RETRY_ATTEMPTS=9", want: "aws: 9 attempts, backoff exp:1s..20s, jitter full"},
		{
			environ: "RETRY_POLICY=aws", args: "-p lock-busy",
			want: "lock-busy: 100 attempts, backoff constant:500ms, jitter 30%",
		},
		{
			environ: "RETRY_BACKOFF=linear:2s RETRY_JITTER=full", args: "-b zizq",
			want: "default: 5 attempts, backoff poly:15s+n^4, jitter full",
		},
		{
			environ: "RETRY_BACKOFF=linear:2s", args: "-b zizq",
			want: "default: 5 attempts, backoff poly:15s+n^4, jitter add:30s*n",
		},
		{
			environ: "RETRY_JITTER=full", args: "-b buckets:3 -j none",
			want: "default: 5 attempts, backoff buckets:3, jitter none",
		},
		{
			environ: "RETRY_BACKOFF=buckets:3", args: "-p aws -j none",
			want: "aws: 3 attempts, backoff buckets:3, jitter none",
		},
		{
			environ: "RETRY_BACKOFF=linear:2s", args: "-j equal",
			want: "default: 5 attempts, backoff linear:2s, jitter equal",
		},
		{
			environ: "RETRY_DEADLINE=2026-03-04T12:10:00Z",
			want:    "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 10m",
		},
		{
			environ: "RETRY_DEADLINE=2026-03-04T12:10:00Z", args: "-B 5m",
			want: "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 5m",
		},
		{
			environ: "RETRY_DEADLINE=2026-03-04T12:10:00Z", args: "-B 1h",
			want: "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 10m",
		},
		{
			args: "--deadline 2026-03-04T12:20:00Z -B 1h",
			want: "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 20m",
		},
	}
	for _, tt := range tests {
		t.Run(tt.environ+" "+tt.args, func(t *testing.T) {
			p, err := resolved(t, tt.environ, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if got := render.Policy(&p); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What the journal keeps of a task and its budget leads to the same deadline, whenever the task was made.
func TestUntilOutlastsTheJournal(t *testing.T) {
	for _, fraction := range []time.Duration{0, 1, 999, time.Microsecond, 999_999, 500_001, 123_456} {
		made, deadline := noon.Add(fraction), noon.Add(time.Hour)
		budget := policies.Until(deadline, made)
		stored := made.Truncate(time.Microsecond).Add(budget.Truncate(time.Millisecond))
		for _, got := range []time.Time{made.Add(budget), stored} {
			if got = got.Truncate(time.Millisecond); !got.Equal(deadline) {
				t.Errorf("made %v after noon: %v", fraction, got)
			}
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	tests := []struct{ environ, args, want string }{
		{environ: "RETRY_ATTEMPTS=x", want: "RETRY_ATTEMPTS"},
		{environ: "RETRY_BACKOFF=exp:", want: "exp:"},
		{environ: "RETRY_POLICY=nope", want: `unknown policy "nope"`},
		{args: "-p aws -b sidekiq -j full", want: "does not fit"},
		{
			environ: "RETRY_JITTER=full", args: "-b sidekiq",
			want: `(RETRY_JITTER): jitter "full" does not fit backoff "sidekiq"`,
		},
		{environ: "RETRY_JITTER=nope", args: "-j full", want: "RETRY_JITTER"},
		{environ: "RETRY_CONSECUTIVE=3", args: "-n 2", want: "(RETRY_CONSECUTIVE): 3 successes in a row"},
		{args: "-b nope -j nope", want: "--backoff: "},
		{args: "--retry-on nope", want: "--retry-on: "},
		{environ: "RETRY_DEADLINE=x", want: "RFC 3339"},
		{environ: "RETRY_DEADLINE=2026-03-04T11:00:00Z", want: "has passed"},
		{environ: "RETRY_BACKOFF=foo", want: "RETRY_BACKOFF"},
		{environ: "RETRY_POLICY=nope", want: "RETRY_POLICY"},
		{args: "-n 2 --consecutive 3", want: "3 successes in a row"},
		{environ: "RETRY_ATTEMPTS=1 RETRY_RETRIES=1", want: "say the same thing"},
	}
	for _, tt := range tests {
		if _, err := resolved(t, tt.environ, tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: got error %v, want %q in it", tt.environ, tt.args, err, tt.want)
		}
	}
}

// The keys of a policy have the names that kong gives its flags.
func TestPolicyKeysAreTheFlags(t *testing.T) {
	known := map[string]bool{}
	for _, k := range policies.Keys() {
		known[k.Name] = true
		if k.Kind != policies.KeyNone && (k.Help == "" || k.Example == "") {
			t.Errorf("%s: got %+v, want a help text and an example", k.Name, k)
		}
		if policies.Elsewhere(k.Name) == "" && k.Kind == policies.KeyNone {
			t.Errorf("%s: got no kind of value, want one, or a text of Elsewhere", k.Name)
		}
	}
	for name, flag := range newTestParser(t, "run", &runCommand{}).Known() {
		if flag.Group != nil && flag.Group.Key == "Policy" && len(name) > 1 && name != "config" && !known[name] {
			t.Errorf("--%s is no setting of a policy", name)
		}
	}
}

// Every setting can come from a variable, except RETRY_DEADLINE, which an outer retry sets.
func TestPolicyVariables(t *testing.T) {
	for _, k := range policies.Keys() {
		env, err := policies.FromEnvironment(func(name string) string { return map[string]string{policies.Variable(k.Name): k.Example}[name] })
		if err != nil || k.Given(env) != (k.Example != "") {
			t.Errorf("%s=%s: got %+v, %v", policies.Variable(k.Name), k.Example, env, err)
		}
	}
}

func BenchmarkParser(b *testing.B) {
	for _, name := range []string{"run", "http"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newTestParser(b, name, newCommand(name))
			}
		})
	}
}

func BenchmarkCommandLine(b *testing.B) {
	for _, args := range []string{"-- true", "-n 3 -- true", "-n 3 --id x --capture both -q -- true",
		"--json --dry-run -- true"} {
		b.Run(args, func(b *testing.B) {
			p := testProcess()
			p.Args = strings.Fields(args)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.parse(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A whole call without a journal or a command: the arguments are parsed, the policy is resolved and shown.
func BenchmarkDispatch(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for _, line := range []string{"--version", "--dry-run -- true",
		"--dry-run -n 8 -b exp:2s..2m --retry-on 1,75 -- rsync a b"} {
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if code := Main(strings.Fields(line), []string{"HOME=/nonexistent"}, null, null, null); code != 0 {
					b.Fatal(code)
				}
			}
		})
	}
}
