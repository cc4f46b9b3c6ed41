package cli

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

// parsedOptions returns the options that flags make.
func parsedOptions(t *testing.T, args string) (task.Options, error) {
	t.Helper()
	command, err := parseRun(t, strings.Fields(args)...)
	return command.Over(command.HookFlags.Options()), err
}

func seed(n uint64) *uint64 { return &n }

// What is as usual stays empty, so that a plain command has no options to store and to show.
func TestOptions(t *testing.T) {
	tests := []struct {
		args string
		want task.Options
	}{
		{"", task.Options{}},
		{"--stdin auto --output stream --capture none", task.Options{}},
		{"--stdin replay", task.Options{Stdin: task.StdinReplay}},
		{"--stdin=null", task.Options{Stdin: task.StdinNull}},
		{"--output final", task.Options{Output: task.OutputFinal, OutputLimit: 2 << 30}},
		{"--output final --output-limit 0", task.Options{Output: task.OutputFinal}},
		{"--output final --output-limit 512M", task.Options{Output: task.OutputFinal, OutputLimit: 512 << 20}},
		{"--output success", task.Options{Output: task.OutputSuccess}}, // the limit is final's alone
		{"--output failure --output-limit 5", task.Options{Output: task.OutputFailure}},
		{"--output-limit 5", task.Options{}},
		{"--capture stderr", task.Options{Capture: task.CaptureStderr}},
		{"--capture both", task.Options{Capture: task.CaptureBoth}},
		{"--on-retry a --on-success b --on-failure c", task.Options{OnRetry: "a", OnSuccess: "b", OnFailure: "c"}},
		{"--on-failure=x,y;z", task.Options{OnFailure: "x,y;z"}},
		{"--seed 0", task.Options{Seed: seed(0)}},
		{"--seed 18446744073709551615", task.Options{Seed: seed(math.MaxUint64)}},
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
		{"--stdin sometimes", "--stdin"}, {"--output last", "--output"}, {"--capture stdout", "--capture"},
		{"--seed -1", "--seed"}, {"--seed x", "--seed"}, {"--seed 18446744073709551616", "--seed"}, {"--seed 1.5", "--seed"},
		{"--output-limit much", `--output-limit: invalid size "much"`}, {"--output-limit=-1", `--output-limit: invalid size "-1"`},
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
		{"", "", "default: 5 attempts, backoff exp:1s..1m, jitter phase"},
		{"", "-p zizq", "zizq: 26 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{"", "-b zizq", "default: 5 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{"", "-b buckets:3", "default: 5 attempts, backoff buckets:3, jitter none"},
		{"", "-p zizq -b exp:1s", "zizq: 26 attempts, backoff exp:1s, jitter add:30s*n"},
		{"", "--retries 3", "default: 4 attempts, backoff exp:1s..1m, jitter phase"},
		{"", "-n 0", "default: no limit of attempts, backoff exp:1s..1m, jitter phase"},
		{"", "-t 30 -B 1h30m --reset-after 2d", "default: 5 attempts, backoff exp:1s..1m, jitter phase, timeout 30s, budget 1h30m, reset after 2d"},
		{"", "--retry-on 1,2 --retry-on 75 --success-on 0,3", "default: 5 attempts, backoff exp:1s..1m, jitter phase, success on 0,3, retry on 1,2, retry on 75"},
		{"RETRY_ATTEMPTS=2", "", "default: 2 attempts, backoff exp:1s..1m, jitter phase"},
		{"RETRY_ATTEMPTS=2", "-n 3", "default: 3 attempts, backoff exp:1s..1m, jitter phase"},
		{"RETRY_ATTEMPTS=2", "--retries 3", "default: 4 attempts, backoff exp:1s..1m, jitter phase"},
		{"RETRY_RETRIES=2", "-n 9", "default: 9 attempts, backoff exp:1s..1m, jitter phase"},
		{"RETRY_POLICY=aws RETRY_ATTEMPTS=9", "", "aws: 9 attempts, backoff exp:1s..20s, jitter full"},
		{"RETRY_POLICY=aws", "-p lock-busy", "lock-busy: 100 attempts, backoff constant:500ms, jitter 30%"},
		{"RETRY_BACKOFF=linear:2s RETRY_JITTER=full", "-b zizq", "default: 5 attempts, backoff poly:15s+n^4, jitter full"},
		{"RETRY_BACKOFF=linear:2s", "-b zizq", "default: 5 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{"RETRY_JITTER=full", "-b buckets:3 -j none", "default: 5 attempts, backoff buckets:3, jitter none"},
		{"RETRY_BACKOFF=buckets:3", "-p aws -j none", "aws: 3 attempts, backoff buckets:3, jitter none"},
		{"RETRY_BACKOFF=linear:2s", "-j equal", "default: 5 attempts, backoff linear:2s, jitter equal"},
		{"RETRY_DEADLINE=2026-03-04T12:10:00Z", "", "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 10m"},
		{"RETRY_DEADLINE=2026-03-04T12:10:00Z", "-B 5m", "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 5m"},
		{"RETRY_DEADLINE=2026-03-04T12:10:00Z", "-B 1h", "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 10m"},
		{"", "--deadline 2026-03-04T12:20:00Z -B 1h", "default: 5 attempts, backoff exp:1s..1m, jitter phase, budget 20m"},
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
		{"RETRY_ATTEMPTS=x", "", "RETRY_ATTEMPTS"},
		{"RETRY_BACKOFF=exp:", "", "exp:"},
		{"RETRY_POLICY=nope", "", `unknown policy "nope"`},
		{"", "-p aws -b sidekiq -j full", "does not fit"},
		{"RETRY_JITTER=full", "-b sidekiq", `(RETRY_JITTER): jitter "full" does not fit backoff "sidekiq"`},
		{"RETRY_JITTER=nope", "-j full", "RETRY_JITTER"},
		{"RETRY_CONSECUTIVE=3", "-n 2", "(RETRY_CONSECUTIVE): 3 successes in a row"},
		{"", "-b nope -j nope", "--backoff: "},
		{"", "--retry-on nope", "--retry-on: "},
		{"RETRY_DEADLINE=x", "", "RFC 3339"},
		{"RETRY_DEADLINE=2026-03-04T11:00:00Z", "", "has passed"},
		{"RETRY_BACKOFF=foo", "", "RETRY_BACKOFF"},
		{"RETRY_POLICY=nope", "", "RETRY_POLICY"},
		{"", "-n 2 --consecutive 3", "3 successes in a row"},
		{"RETRY_ATTEMPTS=1 RETRY_RETRIES=1", "", "say the same thing"},
	}
	for _, tt := range tests {
		if _, err := resolved(t, tt.environ, tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: error %v, want %q in it", tt.environ, tt.args, err, tt.want)
		}
	}
}

// The keys of a policy have the names that kong gives its flags.
func TestPolicyKeysAreTheFlags(t *testing.T) {
	known := map[string]bool{}
	for _, k := range policies.Keys() {
		known[k.Name] = true
		if k.Kind != policies.KeyNone && (k.Help == "" || k.Example == "") {
			t.Errorf("%s has no help or no example: %+v", k.Name, k)
		}
		if policies.Elsewhere(k.Name) == "" && k.Kind == policies.KeyNone {
			t.Errorf("%s is a key that nobody can read", k.Name)
		}
	}
	for name, flag := range newTestParser(t, "run", &runCommand{}).known {
		if flag.Group != nil && flag.Group.Key == "Policy" && len(name) > 1 && name != "config" && !known[name] {
			t.Errorf("--%s is no setting of a policy", name)
		}
	}
}

// Every setting can come from the environment; RETRY_DEADLINE is an outer retry's.
func TestPolicyVariables(t *testing.T) {
	for _, k := range policies.Keys() {
		env, err := policies.FromEnvironment(func(name string) string { return map[string]string{policies.Variable(k.Name): k.Example}[name] })
		if err != nil || k.Given(env) != (k.Example != "") {
			t.Errorf("%s=%s: %+v, %v", policies.Variable(k.Name), k.Example, env, err)
		}
	}
}
