package task

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
)

func TestClassify(t *testing.T) {
	timedOut := Outcome{Exit: 143, Signal: "SIGTERM", Error: ErrorTimeout}
	segv := Outcome{Exit: 139, Signal: "SIGSEGV"}
	notFound := Outcome{Exit: 127, Error: ErrorNotFound}
	tests := []struct {
		name                 string
		success, stop, retry string
		outcome              Outcome
		want                 Class
	}{
		{"success by default", "", "", "", exit(0), ClassSuccess},
		{"failure by default", "", "", "", exit(1), ClassRetryable},
		{"retry-on replaces the default", "", "", "75", exit(1), ClassFatal},
		{"retry-on matches", "", "", "75", exit(75), ClassRetryable},
		{"retry-on leaves success alone", "", "", "75", exit(0), ClassSuccess},
		{"retry-on an exit of 0", "", "", "0", exit(0), ClassRetryable},
		{"every code of a list counts", "", "", "1,2", exit(2), ClassRetryable},
		{"stop-on", "", "2", "", exit(2), ClassFatal},
		{"stop-on leaves the rest to the default", "", "2", "", exit(1), ClassRetryable},
		{"stop-on goes before retry-on", "", "2", "any", exit(2), ClassFatal},
		{"success-on goes before stop-on", "2", "2", "", exit(2), ClassSuccess},
		{"success-on replaces the default", "2", "", "", exit(0), ClassRetryable},
		{"stop-on an exit of 0", "", "0", "", exit(0), ClassSuccess},
		{"stop-on an exit of 0 that is no success", "3", "0", "", exit(0), ClassFatal},
		{"an exit of 127 by default", "", "", "", exit(127), ClassFatal},
		{"an exit of 126 by default", "", "2", "", exit(126), ClassFatal},
		{"an exit of 127, named", "", "", "127", exit(127), ClassRetryable},
		{"an exit of 127, with any", "", "", "any", exit(127), ClassRetryable},
		{"signal by name", "", "SIGSEGV", "", segv, ClassFatal},
		{"signal by number", "", "139", "", segv, ClassFatal},
		{"any signal", "", "signal", "", segv, ClassFatal},
		{"a timeout is no signal", "", "signal,SIGTERM,143", "", timedOut, ClassRetryable},
		{"timeout", "", "timeout", "", timedOut, ClassFatal},
		{"timeout by retry's own status", "", "124", "", timedOut, ClassFatal},
		{"not found, even with any", "", "", "any", notFound, ClassFatal},
		{"not found, named", "", "", "127", notFound, ClassRetryable},
		{"any failure", "", "", "any", exit(200), ClassRetryable},
		{"range", "", "", "100-120", exit(120), ClassRetryable},
		{"outside the range", "", "", "100-120", exit(121), ClassFatal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := DefaultPolicy()
			for text, to := range map[*string]*[]Condition{&tt.success: &p.SuccessOn, &tt.stop: &p.StopOn,
				&tt.retry: &p.RetryOn} {
				if *text != "" {
					*to = conditions(t, *text)
				}
			}
			if got, _ := p.Classify(Evidence{Outcome: tt.outcome}); got.Class != tt.want {
				t.Errorf("got class %d, want %d", got.Class, tt.want)
			}
		})
	}
}

func TestParseConditionRefuses(t *testing.T) {
	for _, text := range []string{"", ",", "1,", "foo", "SIGFOO", "sigterm", "1-", "-1", "5-3", "1-2-3",
		"99999999999999", "1.5", "0x1"} {
		_, err := ParseCondition(text)
		if err == nil {
			t.Errorf("%q: got no error, want one", text)
		} else if !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: got %q, want a hint in it", text, err)
		}
	}
}

func TestParseConditionKnowsBetter(t *testing.T) {
	for text, hint := range map[string]string{
		"sigterm": "write SIGTERM", "KILL": "write SIGKILL", "1,hup": "write SIGHUP", "Timeout": "write timeout",
		"ANY": "write any", "success": "written 0", "fail": "write any",
		"exit": "an expression such as exit == 75", "foo": "a list such as", "5XX": "write 5xx", "Dns": "write dns",
	} {
		if _, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: got error %v, want %q in it", text, err, hint)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, seed := range []string{"1,75,100-120", "SIGSEGV", "any, timeout", "-", "1--2", "signal"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text)
		if err != nil {
			return
		}
		if matches, _ := c.Match(Evidence{Outcome: Crashed()}); matches {
			t.Errorf("%q on an attempt without an outcome: got a match, want none", text)
		}
	})
}

func TestBuiltinPolicies(t *testing.T) {
	tests := []struct {
		name            string
		attempts        int
		backoff, jitter string
	}{
		{"default", 5, "exp:1s..1m", "phase"},
		{"sidekiq", 26, "sidekiq", "none"},
		{"zizq", 26, "poly:15s+n^4", "add:30s*n"},
		{"aws", 3, "exp:1s..20s", "full"},
		{"grpc", 5, "exp:1s*1.6..2m", "20%"},
		{"lock-busy", 100, "constant:500ms", "30%"},
	}
	for _, tt := range tests {
		p, err := BuiltinPolicy(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != tt.name || p.Attempts != tt.attempts || p.Backoff.Curve() != tt.backoff ||
			p.Backoff.Jitter() != tt.jitter {
			t.Errorf("got %s: %d attempts, %s, %s, want %+v", p.Name, p.Attempts, p.Backoff.Curve(), p.Backoff.Jitter(),
				tt)
		}
	}
	if len(tests) != len(backoff.Presets())+1 {
		t.Errorf("got %d rows, want one for each preset and the default", len(tests))
	}
	if _, err := BuiltinPolicy("sidekick"); err == nil || !strings.Contains(err.Error(), "sidekiq") {
		t.Errorf("unknown policy: got error %v, want the known ones in it", err)
	}
}

func TestPolicyJSON(t *testing.T) {
	p, err := BuiltinPolicy("zizq")
	if err != nil {
		t.Fatal(err)
	}
	p.Timeout, p.Budget, p.ResetAfter, p.Consecutive = 1500*time.Millisecond, time.Hour, time.Minute, 2
	p.RetryOn, p.StopOn, p.SuccessOn = conditions(t, "75", "signal"), conditions(t, "2"), conditions(t, "0,3")
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"name":"zizq","attempts":26,"backoff":"poly:15s+n^4","jitter":"add:30s*n","timeout_ms":1500,"kill_after_ms":5000,` +
		`"budget_ms":3600000,"reset_after_ms":60000,"consecutive":2,"retry_on":["75","signal"],"stop_on":["2"],"success_on":["0,3"],"rules":[]}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	var back Policy
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); string(again) != want {
		t.Errorf("after a round trip: got %s, want %s", again, want)
	}
	if classOf(&back, exit(75)) != ClassRetryable || classOf(&back, exit(1)) != ClassFatal {
		t.Error("after a round trip: got other conditions, want the same")
	}
}

func TestPolicyJSONRefuses(t *testing.T) {
	for _, text := range []string{`{"backoff":"nope"}`, `{"backoff":"exp:1s","jitter":"x"}`,
		`{"backoff":"exp:1s","retry_on":["x"]}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &Policy{}); err == nil {
			t.Errorf("%s: got no error, want one", text)
		}
	}
}

// A limit below a millisecond stays a limit in JSON.
func TestPolicyJSONKeepsTinyLimits(t *testing.T) {
	p := DefaultPolicy()
	p.Budget = time.Microsecond
	data, _ := json.Marshal(p)
	var back Policy
	if err := json.Unmarshal(data, &back); err != nil || back.Budget != time.Millisecond {
		t.Errorf("got budget %v, error %v, want 1ms", back.Budget, err)
	}
}

func classOf(p *Policy, o Outcome) Class {
	c, _ := p.Classify(Evidence{Outcome: o})
	return c.Class
}

func TestCheckCondition(t *testing.T) {
	const request = Kind("http")
	tests := []struct {
		kind       Kind
		text, want string // the error; "" for none
	}{
		{kind: request, text: "429,5xx"},
		{kind: request, text: "500-504, timeout"},
		{kind: request, text: "999, 99-101, reset, any"},
		{kind: request, text: "22", want: "invalid HTTP status 22"},
		{kind: request, text: "429, 1-3", want: "invalid HTTP status 1-3"},
		{kind: request, text: "1000", want: "invalid HTTP status 1000"},
		{kind: request, text: "SIGSEGV", want: "no signal ends a request"},
		{kind: request, text: "UNAVAILABLE", want: "UNAVAILABLE is a status of gRPC"},
		{kind: KindCommand, text: "RESOURCE_EXHAUSTED", want: "RESOURCE_EXHAUSTED is a status of gRPC"},
		{kind: KindGRPC, text: "UNAVAILABLE,RESOURCE_EXHAUSTED,0-16,dns,connect,tls,reset,timeout,faults,any"},
		{kind: KindGRPC, text: "UNAVAILABEL", want: "did you mean UNAVAILABLE?"},
		{kind: KindGRPC, text: "unavailable", want: "write UNAVAILABLE"},
		{kind: KindGRPC, text: "503", want: "503 is no status of gRPC"},
		{kind: KindGRPC, text: "14-17", want: "14-17 is no status of gRPC"},
		{kind: KindGRPC, text: "5xx", want: "5xx is no status of gRPC"},
		{kind: KindGRPC, text: "SIGTERM", want: "no signal ends a call"},
		{kind: KindGRPC, text: "truncated", want: "write reset"},
		{kind: KindGRPC, text: "RESOURCE_EXHAUSTD", want: "did you mean RESOURCE_EXHAUSTED?"},
		{kind: request, text: "503,signal", want: "no signal ends a request"},
		{kind: request, text: "22x", want: "invalid item"},
		{kind: KindCommand, text: "0,255, 100-300"},
		{kind: KindCommand, text: "SIGSEGV,signal,timeout,any"},
		{kind: KindCommand, text: "faults", want: "faults is an end of requests"},
		{kind: KindCommand, text: "999", want: "no command exits with 999"},
		{kind: KindCommand, text: "1,256-300", want: "no command exits with 256-300"},
		{kind: KindCommand, text: "dns", want: "dns is an end of requests"},
		{kind: KindCommand, text: "1, 5xx", want: "5xx is for the statuses of requests"},
	}
	for _, tt := range tests {
		err := CheckCondition(tt.kind, tt.text)
		if tt.want == "" && err != nil {
			t.Errorf("%s, %q: got %v, want no error", tt.kind, tt.text, err)
		}
		if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "\nhint: ")) {
			t.Errorf("%s, %q: got %v, want %q and a hint", tt.kind, tt.text, err, tt.want)
		}
	}
}

// lockBusy is a policy with a rule for exit 75, a busy lock, which is tried again soon.
func lockBusy(t testing.TB) *Policy {
	t.Helper()
	p := DefaultPolicy()
	p.Attempts = 0
	p.Backoff, _ = backoff.Parse("exp:10s..10m", "none")
	for _, r := range [][3]string{{"75", "constant:500ms", "30%"}, {"signal", "exp:1s", "none"}} {
		rule, err := ParseRule(r[0], r[1], r[2])
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, rule)
	}
	return &p
}

func TestRulesGiveTheirDelay(t *testing.T) {
	p := lockBusy(t)
	killed := Outcome{Exit: 137, Signal: "SIGKILL"}
	steps := []struct {
		outcome Outcome
		rule    int
		want    time.Duration
	}{
		{exit(1), 0, 10 * time.Second},
		{exit(75), 1, 500 * time.Millisecond}, {exit(75), 1, 500 * time.Millisecond},
		{exit(1), 0, 20 * time.Second}, // the others back off from where they were
		{killed, 2, time.Second}, {killed, 2, 2 * time.Second},
		{exit(75), 1, 500 * time.Millisecond},
		{killed, 2, time.Second}, // a rule begins anew
		{Crashed(), 0, 0},
		{killed, 2, 2 * time.Second}, // a crash came between, but no other delay
		{exit(1), 0, 40 * time.Second},
	}
	h := History{Began: epoch}
	for i, s := range steps {
		d := Decide(p, h, s.outcome, epoch, half)
		if d.Delay != s.want || d.Rule != s.rule {
			t.Errorf("step %d: got delay %v by rule %d, want %v by rule %d", i, d.Delay, d.Rule, s.want, s.rule)
		}
		h = h.After(p, s.outcome, d)
	}
	if h.Made != len(steps) || h.Counted != len(steps)-1 {
		t.Errorf("got %d made, %d counted, want %d, %d", h.Made, h.Counted, len(steps), len(steps)-1)
	}
}

// In any mix of outcomes a busy lock waits 350 to 650 ms, and other failures wait as without the rule.
func TestABusyLockNeverBacksOff(t *testing.T) {
	p := lockBusy(t)
	rapid.Check(t, func(t *rapid.T) {
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		h := History{Began: epoch, Phase: dice.Float64()}
		others := 0
		for _, busy := range rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "busy") {
			o := exit(1)
			if busy {
				o = exit(75)
			}
			d := Decide(p, h, o, epoch, dice.Float64)
			switch {
			case d.Verdict != VerdictRetry:
				t.Fatalf("got %+v, want a retry", d)
			case busy && (d.Delay < 350*time.Millisecond || d.Delay > 650*time.Millisecond):
				t.Fatalf("busy lock: got delay %v, want 350ms to 650ms", d.Delay)
			case !busy:
				others++
				if want := p.Backoff.Base(others); d.Delay != want {
					t.Fatalf("other failure %d: got delay %v, want %v", others, d.Delay, want)
				}
			}
			h = h.After(p, o, d)
		}
	})
}

// A rule gives a delay, but does not make an outcome retryable.
func TestARuleMakesNothingEligible(t *testing.T) {
	p := lockBusy(t)
	p.StopOn = conditions(t, "75")
	if d := Decide(p, History{Began: epoch}, exit(75), epoch, half); d.Verdict != VerdictFailed || d.Rule != 0 {
		t.Errorf("got %+v, want a failure without a rule", d)
	}
}

func TestParseRuleRefuses(t *testing.T) {
	for _, tt := range []struct{ when, curve, jitter, want string }{
		{"", "constant:1s", "", "when: condition"},
		{"foo", "constant:1s", "", "when: condition"},
		{"75", "", "", "parse backoff"},
		{"75", "constant:1s", "lots", "parse jitter"},
	} {
		if _, err := ParseRule(tt.when, tt.curve, tt.jitter); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got error %v, want %q in it", tt, err, tt.want)
		}
	}
}

// fake is an expression without a library: stderr is longer than a limit. It fails on the output "?".
type fake struct{ limit int }

var errUnreadable = errors.New("cannot be evaluated")

func (f fake) Match(e Evidence) (bool, error) {
	if strings.Contains(e.Stderr, "?") {
		return false, errUnreadable
	}
	return len(e.Stderr) > f.limit, nil
}

func (f fake) Captures() CaptureMode { return CaptureStderr }

func (f fake) Uses(name string) bool { return name == "stderr" }

func TestDecideWithExpressions(t *testing.T) {
	p := DefaultPolicy()
	p.StopOn = []Condition{{text: "long", expression: fake{ConditionTail - 1}}}
	if looks := p.Captures(); looks != CaptureStderr {
		t.Errorf("got %s, want %s", looks, CaptureStderr)
	}
	decide := func(stderr string) Decision {
		o := exit(1)
		o.Stderr = stderr
		return Decide(&p, History{Began: epoch}, o, epoch, half)
	}
	if d := decide(strings.Repeat("x", ConditionTail)); d.Verdict != VerdictFailed || d.ConditionErr != nil {
		t.Errorf("got %+v, want a failure", d)
	}
	// A condition that cannot be evaluated does not match, and the error is reported.
	if d := decide("?"); d.Verdict != VerdictRetry || !errors.Is(d.ConditionErr, errUnreadable) {
		t.Errorf("got %+v, want a retry and the error %v", d, errUnreadable)
	}
}

// A rule that cannot be evaluated is reported only if a delay is needed.
func TestARuleIsNoTroubleAtTheEnd(t *testing.T) {
	p := DefaultPolicy()
	p.Rules = []Rule{{When: Condition{text: "long", expression: fake{}}, Backoff: p.Backoff}}
	o := exit(1)
	o.Stderr = "?"
	if d := Decide(&p, History{Began: epoch}, o, epoch, half); d.Verdict != VerdictRetry ||
		!errors.Is(d.ConditionErr, errUnreadable) {
		t.Errorf("got %+v, want a retry and the error %v", d, errUnreadable)
	}
	d := Decide(&p, History{Began: epoch, Counted: p.Attempts - 1}, o, epoch, half)
	if d.Verdict != VerdictExhausted || d.ConditionErr != nil {
		t.Errorf("got %+v, want exhausted and no error", d)
	}
}

// Conditions see the number of the attempt and the time since the task began, also after a requeue.
func TestEvidence(t *testing.T) {
	e := History{Began: epoch, Made: 7}.evidence(exit(3), epoch.Add(time.Minute))
	if e.Attempt != 8 || e.Elapsed != time.Minute || e.Exit != 3 {
		t.Errorf("got %+v, want attempt 8 after 1m", e)
	}
	if e := (History{Began: epoch}).evidence(exit(3), epoch.Add(-time.Hour)); e.Elapsed != 0 { // the clock was set back
		t.Errorf("got %+v, want 0 elapsed", e)
	}
}

func TestConditionIsAnExpression(t *testing.T) {
	for text, want := range map[string]bool{
		"1,75,100-120": false, "SIGSEGV": false, " any , timeout ": false, "5xx": false, "": false, "signals": false,
		"1-":        false,
		"exit == 1": true, "not timeout": true, "exit in [1, 75]": true, "1.5": true, "!any": true, "a_b": true,
	} {
		if got := isExpression(strings.TrimSpace(text)); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestCaptureModes(t *testing.T) {
	modes := []CaptureMode{CaptureNone, CaptureStderr, CaptureBoth}
	for i, a := range modes {
		for j, b := range modes {
			if got := a.And(b); got != modes[max(i, j)] {
				t.Errorf("%s and %s: got %s, want %s", a, b, got, modes[max(i, j)])
			}
		}
	}
	if got := CaptureMode("").And(""); got != CaptureNone {
		t.Errorf("twice empty: got %q, want %q", got, CaptureNone)
	}
}

// The journal keeps only the end of the captured output.
func TestTrimTails(t *testing.T) {
	long := strings.Repeat("a", ConditionTail-1) + "z"
	o := Outcome{Stdout: "short", Stderr: long}.TrimTails()
	if o.Stdout != "short" || len(o.Stderr) != StoredTail || !strings.HasSuffix(o.Stderr, "az") {
		t.Errorf("got %d bytes of stdout, %d of stderr, want 5, %d", len(o.Stdout), len(o.Stderr), StoredTail)
	}
}

// A decision allocates nothing, so that simulations of a million tasks are fast.
func TestDecideAllocatesNothing(t *testing.T) {
	p := lockBusy(t)
	h := History{Began: epoch, Phase: 0.3}
	for _, o := range []Outcome{exit(1), exit(75)} {
		allocated := testing.AllocsPerRun(100, func() {
			d := Decide(p, h, o, epoch, half)
			h.After(p, o, d)
		})
		if allocated > 0 {
			t.Errorf("exit %d: got %v allocations for a decision, want 0", o.Exit, allocated)
		}
	}
}

// Journals and scripts contain this JSON: it must never change.
func TestPolicyJSONIsStable(t *testing.T) {
	tests := []struct {
		name   string
		policy Policy
		want   string
	}{
		{
			name: "the default", policy: DefaultPolicy(),
			want: `{"name":"default","attempts":5,"backoff":"exp:1s..1m","jitter":"phase","timeout_ms":null,"kill_after_ms":5000,` +
				`"budget_ms":null,"reset_after_ms":null,"consecutive":1,"retry_on":[],"stop_on":[],"success_on":[],"rules":[]}`,
		},
		{
			name: "everything", policy: fullPolicy(t),
			want: `{"name":"\u003c\u0026\u003e \"x\" \ufffd \u2028","attempts":0,"backoff":"poly:15s+n^4","jitter":"add:30s*n","timeout_ms":1,` +
				`"kill_after_ms":1500,"budget_ms":3600000,"reset_after_ms":86400000,"consecutive":3,"retry_on":["75","100-120"],` +
				`"stop_on":["SIGSEGV"],"success_on":["timeout"],"rules":[{"when":"75","backoff":"exp:1s..1m","jitter":"30%"}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.policy)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, error %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// fullPolicy sets every field; its shortest limit is less than a millisecond.
func fullPolicy(t *testing.T) Policy {
	t.Helper()
	curve, err := backoff.Parse("poly:15s+n^4", "add:30s*n")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := ParseRule("75", "exp:1s..1m", "30%")
	if err != nil {
		t.Fatal(err)
	}
	return Policy{
		Name: "<&> \"x\" \xff \u2028", Backoff: curve, Timeout: time.Nanosecond, KillAfter: 1500 * time.Millisecond,
		Budget:     time.Hour,
		ResetAfter: 24 * time.Hour, Consecutive: 3, RetryOn: conditions(t, "75", "100-120"),
		StopOn:    conditions(t, "SIGSEGV"),
		SuccessOn: conditions(t, "timeout"), Rules: []Rule{rule},
	}
}
