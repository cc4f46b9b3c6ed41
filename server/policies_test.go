package server

import (
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/task"
)

const careful = `{"policyId": "careful", "maxAttempts": 8, "initialDelayMs": 500, "multiplier": 1.5,
	"maxDelayMs": 60000,
	"totalBudgetMs": 3600000, "jitterType": "FULL", "retryableStatusCodes": [503, 429]}`

func TestPolicies(t *testing.T) {
	g := newRig(t)
	made := g.ask("POST", "/retry-policies", careful).wants(201)
	got := made.json()
	for name, want := range map[string]string{
		"policyId": "careful", "maxAttempts": "8", "initialDelayMs": "500", "multiplier": "1.5", "maxDelayMs": "60000",
		"totalBudgetMs": "3600000", "jitterType": "FULL", "retryableStatusCodes": "[429 503]", "source": "store",
	} {
		if sprint(got[name]) != want {
			t.Errorf("%s: got %v, want %s", name, got[name], want)
		}
	}
	g.ask("POST", "/retry-policies", careful).wants(200)
	g.ask("POST", "/retry-policies", strings.Replace(careful, "500", "600", 1)).wants(409)
	g.ask("POST", "/retry-policies", `{"policyId": "default", "maxAttempts": 2}`).wants(409)
	g.ask("POST", "/retry-policies", `{"maxAttempts": 2}`).wants(422)

	read := g.ask("GET", "/retry-policies/careful", "").wants(200)
	tag := read.header.Get("ETag")
	if tag == "" || tag != made.header.Get("ETag") {
		t.Errorf("got ETags %q and %q, want one", tag, made.header.Get("ETag"))
	}
	g.ask("GET", "/retry-policies/careful", "", "If-None-Match", tag).wants(304)
	g.ask("PUT", "/retry-policies/careful", read.body, "If-Match", tag).wants(200)
	changed := g.ask("PUT", "/retry-policies/careful", `{"backoff": "exp:2s..1h", "rules": [{"when": "429",
		"backoff": "1m"}]}`,
		"If-Match", tag).wants(200)
	g.ask("PUT", "/retry-policies/careful", careful, "If-Match", tag).wants(412)
	g.ask("DELETE", "/retry-policies/careful", "", "If-Match", tag).wants(412)
	g.ask("PUT", "/retry-policies/careful", careful, "If-None-Match", "*").wants(412)
	g.ask("PUT", "/retry-policies/careful", strings.Replace(careful, `"careful"`, `"other"`, 1)).wants(422)
	spec := g.ask("GET", "/retry-policies/careful?view=spec", "").wants(200).json()
	if spec["backoff"] != "exp:2s..1h" || spec["jitter"] != "phase" || spec["initialDelayMs"] != nil {
		t.Errorf("got %v, want the curve as the command line spells it", spec)
	}
	g.ask("DELETE", "/retry-policies/careful", "", "If-Match", changed.header.Get("ETag")).wants(204)
	g.ask("DELETE", "/retry-policies/careful", "").wants(404)
	g.ask("GET", "/retry-policies/careful", "").wants(404)
	g.ask("PUT", "/retry-policies/careful", careful, "If-Match", tag).wants(412)
	g.ask("PUT", "/retry-policies/careful", careful, "If-None-Match", "*").wants(201)
	g.ask("DELETE", "/retry-policies/default", "").wants(409)
	g.ask("GET", "/retry-policies/carefuls", "").wants(404)
}

// The default policy can be replaced, and tasks keep the copy that they were made with.
func TestDefaultPolicy(t *testing.T) {
	g := newRig(t)
	before := g.create(hook)
	tag := g.ask("GET", "/retry-policies/default", "").wants(200).header.Get("ETag")
	g.ask("PUT", "/retry-policies/default", `{"maxAttempts": 9}`, "If-Match", tag).wants(201)
	after := g.create(hook)
	for id, want := range map[string]string{before: "5", after: "9"} {
		policy := g.ask("GET", "/retry-tasks/"+id+"?view=full", "").wants(200).json()["policy"].(map[string]any)
		if sprint(policy["maxAttempts"]) != want {
			t.Errorf("got %v attempts, want %s", policy["maxAttempts"], want)
		}
	}
}

func TestPolicyMistakes(t *testing.T) {
	g := newRig(t)
	for _, tt := range []struct{ body, want string }{
		{`{"maxAttempts": 0}`, "/maxAttempts want a whole number from 1 to 1000"},
		{`{"maxAttempts": 1001}`, "/maxAttempts want a whole number from 1 to 1000"},
		{`{"attempts": 3}`, "/attempts unknown field"},
		{`{"multiplier": 0.5}`, "/multiplier want a number from 1"},
		{`{"initialDelayMs": 5000, "maxDelayMs": 1000}`, "/maxDelayMs the most, 1000 ms, is below"},
		{`{"jitterType": "full"}`, `/jitterType invalid value "full"`},
		{`{"jitterType": "FULL", "jitter": "equal"}`,
			"/jitter jitter \"equal\" and jitterType \"FULL\" say different things"},
		{`{"backoff": "exp:1s..1m", "initialDelayMs": 3}`, "/backoff backoff \"exp:1s..1m\" and initialDelayMs"},
		{`{"backoff": "expo:1s"}`, "/backoff parse backoff"},
		{`{"jitter": "fulll"}`, "/jitter parse jitter"},
		{`{"retryableStatusCodes": [600]}`, "/retryableStatusCodes/0 want a whole number"},
		{`{"retryableStatusCodes": [50]}`, "/retryableStatusCodes no protocol has a status 50"},
		{`{"retryOn": ["5xx", "nope"]}`, "/retryOn/1 condition \"nope\""},
		{`{"retryOn": "429", "retryableStatusCodes": [500]}`,
			"/retryOn retryOn and retryableStatusCodes say different things"},
		{`{"rules": [{"when": "429"}]}`, "/rules/0/backoff the field is missing"},
		{`{"ambiguous": "maybe"}`, "/ambiguous invalid value"},
		{`{"totalBudgetMs": 0}`, "/totalBudgetMs want a whole number"},
	} {
		got := g.ask("PUT", "/retry-policies/x", tt.body).wants(422).pointers()
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: got %q, want %q", tt.body, got, tt.want)
		}
	}
	g.ask("PUT", "/retry-policies/%20x", `{}`).wants(422)
}

func TestConfiguredPolicies(t *testing.T) {
	configured := task.DefaultPolicy()
	configured.Name, configured.Attempts = "deploy", 77
	g := newRig(t, func(c *Config) { c.Policies = func() []task.Policy { return []task.Policy{configured} } })
	g.ask("PUT", "/retry-policies/deploy", `{}`).wants(409)
	g.ask("DELETE", "/retry-policies/deploy", "").wants(409)
	list := g.ask("GET", "/retry-policies", "").wants(200).json()["policies"].([]any)
	first, second := list[0].(map[string]any), list[2].(map[string]any)
	if first["policyId"] != "default" || second["policyId"] != "deploy" || second["source"] != "config file" {
		t.Errorf("got %v, %v, want the default first, and deploy of the config file", first, second)
	}
	g.create(`{"targetUrl": "https://example.org/", "policyId": "deploy"}`)
}

func TestInlinePolicy(t *testing.T) {
	g := newRig(t)
	id := g.create(`{"targetUrl": "https://example.org/", "policy": {"maxAttempts": 2, "ambiguous": "stop"}}`)
	got := g.ask("GET", "/retry-tasks/"+id+"?view=full", "").wants(200).json()
	if got["policyId"] != nil || got["ambiguous"] != "stop" {
		t.Errorf("got policyId %v, ambiguous %v, want null and stop", got["policyId"], got["ambiguous"])
	}
	for body, want := range map[string]string{
		`{"targetUrl": "https://a.org/", "policy": {"policyId": "x"}}`:                       "/policy/policyId a policy",
		`{"targetUrl": "https://a.org/", "policy": {}, "policyId": "default"}`:               "/policy policy and policyId",
		`{"targetUrl": "https://a.org/", "policy": {"retryOn": ["SIGTERM"]}}`:                "/policy/retryOn condition",
		`{"targetUrl": "https://a.org/", "policy": {"consecutive": 2}, "ambiguous": "stop"}`: "/ambiguous 2 successes",
		`{"targetUrl": "https://a.org/", "policy": {"totalBudgetMs": 100}, "delayMs": 200}`:  "/delayMs the first attempt",
	} {
		if got := g.ask("POST", "/retry-tasks", body).wants(422).pointers(); !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestPreview(t *testing.T) {
	g := newRig(t)
	got := g.ask("POST", "/retry-policies:preview", `{"policy": {"backoff": "exp:1s..1m", "jitter": "none",
		"maxAttempts": 4}}`).
		wants(200).json()
	retries := got["retries"].([]any)
	if len(retries) != 3 || sprint(retries[2].(map[string]any)["baseMs"]) != "4000" {
		t.Errorf("got %v, want 1 s, 2 s, 4 s", retries)
	}
	g.ask("POST", "/retry-policies:preview", `{"policyId": "sidekiq", "tasks": 10}`).wants(200)
	g.ask("POST", "/retry-policies:preview", `{"policy": {"maxAttempts": 1}}`).wants(200)
	g.ask("POST", "/retry-policies:preview", `{"policyId": "nothing"}`).wants(422)
	g.ask("POST", "/retry-policies:preview", `{"policy": {"maxAttempts": 1000}, "tasks": 10000}`).wants(422)
}

// A policy that another process has changed holds a moment later.
func TestPolicyOfAnotherProcess(t *testing.T) {
	now := time.Now()
	g := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	p := task.DefaultPolicy()
	p.Name, p.Attempts = "x", 2
	_, err := g.queue.PutPolicy(t.Context(), p, "", now)
	testkit.Must(t, err)
	body := `{"targetUrl": "https://example.org/", "policyId": "x"}`
	g.create(body)
	p.Attempts = 3
	_, err = g.queue.PutPolicy(t.Context(), p, "", now)
	testkit.Must(t, err)
	now = now.Add(2 * time.Second)
	full := g.ask("GET", "/retry-tasks/"+g.create(body)+"?view=full", "").json()
	if got := full["policy"].(map[string]any)["maxAttempts"]; sprint(got) != "3" {
		t.Errorf("got %v attempts, want the changed 3", got)
	}
	if !wire.SamePolicy(p, p) {
		t.Error("a policy is not the same as itself")
	}
}
