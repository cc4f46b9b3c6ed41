package task

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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
		{"stop-on an exit of 0", "", "0", "", exit(0), ClassFatal},
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
			for text, to := range map[*string]*[]Condition{&tt.success: &p.SuccessOn, &tt.stop: &p.StopOn, &tt.retry: &p.RetryOn} {
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
	for _, text := range []string{"", ",", "1,", "foo", "SIGFOO", "sigterm", "1-", "-1", "5-3", "1-2-3", "99999999999999", "1.5", "0x1"} {
		_, err := ParseCondition(text)
		if err == nil {
			t.Errorf("%q was accepted", text)
		} else if !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: no hint in %q", text, err)
		}
	}
}

func TestParseConditionKnowsBetter(t *testing.T) {
	for text, hint := range map[string]string{
		"sigterm": "write SIGTERM", "KILL": "write SIGKILL", "1,hup": "write SIGHUP", "Timeout": "write timeout", "ANY": "write any",
		"exit": "an expression such as exit == 75", "foo": "a list such as", "5XX": "write 5xx", "Dns": "write dns",
	} {
		if _, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", text, err)
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
			t.Errorf("%q matches an attempt without an outcome", text)
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
		if p.Name != tt.name || p.Attempts != tt.attempts || p.Backoff.Curve() != tt.backoff || p.Backoff.Jitter() != tt.jitter {
			t.Errorf("%s: %d attempts, %s, %s", p.Name, p.Attempts, p.Backoff.Curve(), p.Backoff.Jitter())
		}
	}
	if len(tests) != len(backoff.Presets())+1 {
		t.Error("a preset has no row here")
	}
	if _, err := BuiltinPolicy("sidekick"); err == nil || !strings.Contains(err.Error(), "sidekiq") {
		t.Errorf("an unknown policy does not name the known ones: %v", err)
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
		t.Errorf("not the same after a round trip: %s", again)
	}
	if classOf(&back, exit(75)) != ClassRetryable || classOf(&back, exit(1)) != ClassFatal {
		t.Error("the conditions were lost")
	}
}

func TestPolicyJSONRefuses(t *testing.T) {
	for _, text := range []string{`{"backoff":"nope"}`, `{"backoff":"exp:1s","jitter":"x"}`, `{"backoff":"exp:1s","retry_on":["x"]}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &Policy{}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// A limit below the resolution of JSON stays a limit.
func TestPolicyJSONKeepsTinyLimits(t *testing.T) {
	p := DefaultPolicy()
	p.Budget = time.Microsecond
	data, _ := json.Marshal(p)
	var back Policy
	if err := json.Unmarshal(data, &back); err != nil || back.Budget != time.Millisecond {
		t.Errorf("budget %v, %v", back.Budget, err)
	}
}

func classOf(p *Policy, o Outcome) Class {
	c, _ := p.Classify(Evidence{Outcome: o})
	return c.Class
}

func TestCheckStatuses(t *testing.T) {
	for _, text := range []string{"429,5xx", "500-504, timeout", "any", "exit == 22", "999", "99-101", "", "reset", "22x"} {
		if err := CheckStatuses(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"22": "22 is no status of HTTP", "429, 1-3": "1-3 is no status", "SIGSEGV": "no signal ends a request", "503,signal": "no signal",
	} {
		if err := CheckStatuses(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
