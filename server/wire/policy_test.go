package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// decode reads a policy of JSON that must be right.
func decode(t rapid.TB, body []byte) task.Policy {
	o, err := problem.Parse(body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	o.Raw("source")
	p := ReadPolicy(o, Limits{Attempts: MaxAttempts, Timeout: NoTimeout})
	if err := o.Finish(); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p
}

// drawPolicy makes a body of a policy in one of the two spellings.
func drawPolicy(t *rapid.T) []byte {
	body := map[string]any{}
	maybe := func(name string, value any) {
		if rapid.Bool().Draw(t, name+"?") {
			body[name] = value
		}
	}
	number := func(name string, least, most int) { maybe(name, rapid.IntRange(least, most).Draw(t, name)) }
	choice := func(name string, from ...string) { maybe(name, rapid.SampledFrom(from).Draw(t, name)) }
	number("maxAttempts", 1, 1000)
	number("totalBudgetMs", 1, 1<<40/1000)
	number("timeoutMs", 1, 1<<30)
	number("killAfterMs", 1, 1<<20)
	number("resetAfterMs", 1, 1<<30)
	number("consecutive", 1, 9)
	choice("ambiguous", "repeat", "stop")
	choice("policyId", "a", "order mail")
	if rapid.Bool().Draw(t, "numbers") {
		initial := rapid.Int64Range(0, 1<<31).Draw(t, "initial")
		body["initialDelayMs"] = initial
		maybe("multiplier", rapid.SampledFrom([]float64{1, 1.25, 2, 3, 10.5, 1000}).Draw(t, "multiplier"))
		maybe("maxDelayMs", rapid.Int64Range(initial, 1<<33).Draw(t, "most"))
		choice("jitterType", JitterTypes()...)
	} else {
		choice("backoff", "5s", "exp:1s..30s", "exp:1ms*1.5", "exp:0s..1s", "linear:2s", "fib:1s..1m", "list:1s,5s,1m",
			"sidekiq",
			"poly:15s+n^4", "buckets:3", "exp:1500us..1s")
		if body["backoff"] != "sidekiq" && body["backoff"] != "buckets:3" {
			choice("jitter", "none", "full", "30%", "decorrelated", "add:5s", "phase")
		}
	}
	if rapid.Bool().Draw(t, "codes") {
		body["retryableStatusCodes"] = rapid.SliceOfN(rapid.IntRange(100, 599), 0, 4).Draw(t, "statuses")
	} else {
		choice("retryOn", "5xx,dns", `status == 409 and header["X"] == "y"`, "faults", "429,faults")
	}
	maybe("stopOn", []string{"401", "403,404"})
	maybe("rules", []map[string]string{{"when": "429", "backoff": "1m"}, {"when": "5xx", "backoff": "exp:1s..9s",
		"jitter": "full"}})
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Both views of a policy say all of it: each can be read and sent back.
func TestPolicyViewsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawPolicy(t)
		p := decode(t, body)
		for _, view := range []View{ViewNumbers, ViewSpec} {
			shown, err := json.Marshal(EncodePolicy(&p, view))
			if err != nil {
				t.Fatal(err)
			}
			if again := decode(t, shown); !SamePolicy(p, again) {
				t.Fatalf("%s was shown as %s, and read as another policy", body, shown)
			}
		}
	})
}

func TestPoliciesAreShownInNumbers(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{}`, `"initialDelayMs":1000,"multiplier":2,"maxDelayMs":60000,"totalBudgetMs":null,"jitterType":"PHASE",` +
			`"retryableStatusCodes":null}`},
		{`{"backoff": "exp:250ms*1.5..1h", "jitter": "full", "retryOn": "429,503,faults"}`,
			`"initialDelayMs":250,"multiplier":1.5,"maxDelayMs":3600000,"totalBudgetMs":null,"jitterType":"FULL",` +
				`"retryableStatusCodes":[429,503]}`},
		{`{"backoff": "5s"}`,
			`"initialDelayMs":null,"multiplier":null,"maxDelayMs":null,"totalBudgetMs":null,"jitterType":null,` +
				`"retryableStatusCodes":null,"backoff":"constant:5s","jitter":"none"}`},
	} {
		p := decode(t, []byte(tt.body))
		got, err := json.Marshal(EncodePolicy(&p, ViewNumbers))
		testkit.Must(t, err)
		if !strings.HasSuffix(string(got), tt.want) {
			t.Errorf("%s: got %s, want …%s", tt.body, got, tt.want)
		}
	}
}

// Every built-in policy can be shown and read.
func TestBuiltinPolicies(t *testing.T) {
	for _, name := range []string{"default", "sidekiq", "zizq", "aws", "grpc", "lock-busy"} {
		p, err := task.BuiltinPolicy(name)
		testkit.Must(t, err)
		shown, err := json.Marshal(EncodePolicy(&p, ViewNumbers))
		testkit.Must(t, err)
		if again := decode(t, shown); !SamePolicy(p, again) {
			t.Errorf("%s: got another policy from %s", name, shown)
		}
	}
}
