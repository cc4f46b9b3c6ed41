package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	_ "github.com/10f93571/retry/internal/expression" // compiles conditions
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// read reads a task that must be right.
func read(t testing.TB, d *Decoder, body string, h Header) *task.Task {
	t.Helper()
	o, err := problem.Parse([]byte(body))
	testkit.Must(t, err)
	made := d.New(o, h)
	testkit.Must(t, o.Finish())
	return made
}

func TestPayload(t *testing.T) {
	base := `{"targetUrl": "https://a.org/", "headers": {"A": "1", "B": "2"}, "bodyJson": {"n": 1}, "idempotencyKey": "k"`
	of := func(body string) string { return read(t, &Decoder{}, body, Header{}).Payload }
	first := of(base + "}")
	for _, same := range []string{
		base + "}",
		`{"idempotencyKey": "k", "bodyJson": {"n": 1}, "headers": {"B": "2", "A": "1"}, "targetUrl": "https://a.org/"}`,
		base + `, "policyId": "default", "method": "POST"}`,
	} {
		if of(same) != first {
			t.Errorf("%s: got another payload", same)
		}
	}
	for _, traced := range []string{
		base + "}", `{"targetUrl": "grpc://a.org:50051/a.B/C", "headers": {"A": "1"}, "bodyJson": {"n": 1},
			"idempotencyKey": "k"}`,
	} {
		one := read(t, &Decoder{}, traced, Header{TraceParent: "00-1-2-00"})
		if other := read(t, &Decoder{}, traced, Header{TraceParent: "00-1-3-00"}); one.Payload != other.Payload {
			t.Errorf("%s: got another payload in another trace", traced)
		}
	}
	seen := []string{first}
	for _, other := range []string{
		`, "method": "PUT"`, `, "delayMs": 5`, `, "tags": ["a"]`, `, "policyId": "aws"`, `, "policy": {}`, `, "timeoutMs": 9`,
		`, "onExhausted": {"targetUrl": "https://b.org"}`, `, "ambiguous": "stop"`, `, "followRedirects": 1`, `,
			"sign": true`,
	} {
		got := of(base + other + "}")
		if slices.Contains(seen, got) {
			t.Errorf("%s: got the payload of another request", other)
		}
		seen = append(seen, got)
	}
	if p := of(`{"targetUrl": "https://a.org/"}`); p != "" {
		t.Errorf("got payload %q without a key, want none", p)
	}
}

func TestExhausted(t *testing.T) {
	d := &Decoder{}
	parent := read(t, d, `{"targetUrl": "https://a.org/", "partition": "acme", "onExhausted":
		{"targetUrl": "https://b.org/dead", "bodyJson": {"x": 1}, "policyId": "aws"}}`, Header{})
	next, err := d.Exhausted(parent)
	testkit.Must(t, err)
	r := request.Of(next)
	if r.URL != "https://b.org/dead" || next.IdempotencyKey != parent.ID+":exhausted" || next.Policy.Name != "aws" ||
		next.Partition != "acme" || next.Parent != parent.ID || !r.Guarded || next.Payload == "" {
		t.Errorf("got %+v of %+v", next, r)
	}
	if again, err := d.Exhausted(parent); err != nil || again.Payload != next.Payload {
		t.Errorf("got payload %v, error %v, want the same task again", again, err)
	}
	gone := &Decoder{Policy: func(name string) (*task.Policy, error) {
		if name == "aws" {
			return nil, errors.New("no such policy")
		}
		p, err := task.BuiltinPolicy(name)
		return &p, err
	}}
	if other, err := gone.Exhausted(parent); err != nil || other.Policy.Name != "aws" {
		t.Errorf("got %v, error %v, want the policy that the task was made with", other, err)
	}
	parent.Options.ExhaustedPolicy = "" // as an older version has made it
	if other, err := gone.Exhausted(parent); err != nil || other.Policy.Name != task.DefaultPolicyName {
		t.Errorf("got %v, error %v, want the default in place of a policy that is gone", other, err)
	}
	unread := &Decoder{Policy: func(string) (*task.Policy, error) { return nil, ErrUnread }}
	if other, err := unread.Exhausted(parent); err != nil || other.Policy.Name != task.DefaultPolicyName {
		t.Errorf("got %v, error %v, want the default in place of a policy that cannot be read", other, err)
	}
	patient := &Decoder{Limits: Limits{Timeout: time.Hour}}
	long := read(t, patient, `{"targetUrl": "https://a.org/", "onExhausted": {"targetUrl": "https://b.org/", "timeoutMs":
		3600000}}`, Header{})
	if other, err := d.Exhausted(long); err != nil || other.Policy.Timeout != time.Hour {
		t.Errorf("got %v, error %v, want the timeout that the server has taken, where another one carries it", other, err)
	}
	if none, err := d.Exhausted(next); none != nil || err != nil {
		t.Errorf("got %v, %v, want nothing to follow", none, err)
	}
}

// Who changes a policy does not change what follows a task that was made before.
func TestExhaustedKeepsItsPolicy(t *testing.T) {
	attempts, timeout := 2, time.Hour
	d := &Decoder{Directory: "/", Limits: Limits{Timeout: NoTimeout}, Policy: func(name string) (*task.Policy, error) {
		p := task.DefaultPolicy()
		p.Name, p.Attempts, p.Timeout = name, attempts, timeout
		return &p, nil
	}}
	tests := []struct {
		name, follower, policyID string
		older                    bool
		attempts                 int
		timeout                  time.Duration
	}{
		{name: "named", follower: `"command": ["a"], "policyId": "esc"`, policyID: "esc", attempts: 2, timeout: time.Hour},
		{name: "default", follower: `"command": ["a"]`, policyID: "default", attempts: 2, timeout: time.Hour},
		{name: "null", follower: `"command": ["a"], "policy": null`, policyID: "default", attempts: 2, timeout: time.Hour},
		{name: "own timeout", follower: `"command": ["a"], "timeoutMs": 5`, policyID: "default", attempts: 2,
			timeout: 5 * time.Millisecond},
		{name: "inline", follower: `"command": ["a"], "policy": {"maxAttempts": 7}`, attempts: 7},
		{name: "of an older version", follower: `"command": ["a"], "policyId": "esc"`, policyID: "esc", older: true,
			attempts: 1000, timeout: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			attempts, timeout = 2, time.Hour
			body := `{"targetUrl": "https://a.org/", "timeoutMs": 9, "onExhausted": {` + tt.follower + `}}`
			parent := read(t, d, body, Header{Exec: true, Key: "k"})
			if got, want := string(EncodeTask(parent, true).OnExhausted), `{`+tt.follower+`}`; !sameJSON(t, got, want) {
				t.Errorf("got onExhausted %s, want %s", got, want)
			}
			attempts, timeout = 1000, 1
			if again := read(t, d, body, Header{Exec: true, Key: "k"}); again.Payload != parent.Payload {
				t.Error("got another payload for the same request, want the content of a named policy left out")
			}
			if tt.older {
				parent.Options.ExhaustedPolicy = ""
			}
			next, err := d.Exhausted(parent)
			testkit.Must(t, err)
			if p := next.Policy; p.Name != tt.policyID || p.Attempts != tt.attempts || p.Timeout != tt.timeout {
				t.Errorf("got policy %q, attempts %d, timeout %s, want %q, %d, %s", p.Name, p.Attempts, p.Timeout,
					tt.policyID, tt.attempts, tt.timeout)
			}
		})
	}
	parent := read(t, d, `{"targetUrl": "https://a.org/", "onExhausted": {"command": ["a"]}}`, Header{Exec: true})
	parent.Options.ExhaustedPolicy = "damaged"
	if next, err := d.Exhausted(parent); err == nil {
		t.Errorf("got %v, want an error for a policy that cannot be read", next)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var first, second any
	testkit.Must(t, json.Unmarshal([]byte(a), &first), json.Unmarshal([]byte(b), &second))
	return reflect.DeepEqual(first, second)
}

func TestReferences(t *testing.T) {
	d := &Decoder{EnvAllow: []string{"TOKEN"}, Lookup: func(name string) (string, bool) {
		return "secret of " + name,
			true
	}}
	made := read(t, d, `{"targetUrl": "https://a.org/", "headers": {"Authorization": "Bearer {env:TOKEN}"}}`, Header{})
	if got := request.Of(made).Header[0]; got != "Authorization: Bearer {env:TOKEN}" {
		t.Errorf("got %q, want the reference stored", got)
	}
	for _, body := range []string{
		`{"targetUrl": "https://a.org/{env:HOME}"}`, `{"targetUrl": "https://a.org/",
			"headers": {"A": "{env:TOKEN}{env:HOME}"}}`,
		`{"targetUrl": "grpc://a.org:50051/a.B/C", "headers": {"a": "{env:HOME}"}}`,
	} {
		o, err := problem.Parse([]byte(body))
		testkit.Must(t, err)
		d.New(o, Header{})
		if err := o.Finish(); err == nil || !strings.Contains(err.Error(), "the variable HOME may not be named") {
			t.Errorf("%s: got %v, want HOME refused", body, err)
		}
	}
}

func TestCalls(t *testing.T) {
	made := read(t, &Decoder{}, `{"targetUrl": "grpc://h.example.org:50051/pkg.Service/Method", "bodyJson": {"n": 1},
		"headers": {"X-Tenant": "a"}, "policyId": "grpc"}`, Header{TraceParent: "00-1-2-00"})
	c := grpcexec.Of(made)
	if c == nil || c.JSON != `{"n": 1}` || !c.Guarded || !c.Safe() || strings.Join(c.Metadata, "\n") !=
		"X-Tenant: a\nTraceparent: 00-1-2-00" {
		t.Fatalf("got %+v", c)
	}
	if w := EncodeTask(made, true); w.Kind != "grpc" || *w.Details.Body != `{"n": 1}` ||
		w.Details.Headers["X-Tenant"] == nil {
		t.Errorf("got %+v, want the call shown", w)
	}
	raw := read(t, &Decoder{}, `{"targetUrl": "grpcs://h.example.org:443/pkg.Service/Method", "bodyBase64": "CAE="}`,
		Header{})
	if c := grpcexec.Of(raw); !c.Raw || string(c.Message) != "\x08\x01" {
		t.Errorf("got %+v, want the message as it is", c)
	}
	for _, body := range []string{`"method": "PUT"`, `"body": "x"`, `"followRedirects": 1`, `"bodyRef": "sha256:x"`} {
		o, err := problem.Parse([]byte(`{"targetUrl": "grpc://h.example.org:50051/pkg.Service/Method", ` + body + "}"))
		testkit.Must(t, err)
		(&Decoder{}).New(o, Header{})
		if o.Finish() == nil {
			t.Errorf("%s: got no mistake", body)
		}
	}
}

func TestCommands(t *testing.T) {
	body := `{"command": ["sh", "-c", "true"], "directory": "/tmp", "timeoutMs": 5}`
	made := read(t, &Decoder{}, body, Header{Exec: true})
	if made.Kind != task.KindCommand || made.Directory != "/tmp" || made.Options.Stdin != task.StdinNull ||
		made.Target != nil {
		t.Errorf("got %+v", made)
	}
	for _, tt := range []struct {
		body string
		exec bool
		want string
	}{
		{body, false, "/command: commands are not accepted here"},
		{`{"command": []}`, true, "/command: the command is empty"},
		{`{"command": ["a\u0000"]}`, true, "/command: a word of it holds a NUL"},
		{`{"command": ["a"], "targetUrl": "https://a.org"}`, true, "/targetUrl: it is for a request"},
		{`{"command": ["a"], "timeoutMs": 900001}`, true, "/timeoutMs: the timeout is 15m1ms, more than 15m"},
		{`{"command": ["a"], "directory": "tmp"}`, true, "/directory: want an absolute path"},
		{`{"targetUrl": "https://a.org/", "onExhausted": {"command": ["a"]}}`, false,
			"/onExhausted/command: commands are not"},
	} {
		o, err := problem.Parse([]byte(tt.body))
		testkit.Must(t, err)
		(&Decoder{}).New(o, Header{Exec: tt.exec})
		if err := o.Finish(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.body, err, tt.want)
		}
	}
}

func TestTail(t *testing.T) {
	for _, tt := range []struct{ kept, text, base64 string }{
		{"", "<nil>", "<nil>"}, {"abc", "abc", "<nil>"}, {"\x9f\x98\x80abc", "abc", "<nil>"}, {"ab\xff\xfe", "<nil>",
			"YWL//g=="},
	} {
		shown := func(s *string) string {
			if s == nil {
				return "<nil>"
			}
			return *s
		}
		text, base64 := tail(tt.kept)
		if shown(text) != tt.text || shown(base64) != tt.base64 {
			t.Errorf("%q: got %s, %s, want %s, %s", tt.kept, shown(text), shown(base64), tt.text, tt.base64)
		}
	}
}

// A task that was read can be stored, shown and read again, whatever it was made of.
func FuzzTask(f *testing.F) {
	for _, body := range []string{
		`{"targetUrl": "https://a.org/", "bodyJson": {"n": 1e400}, "headers": {"A": ["1", ""]}}`,
		`{"targetUrl": "grpc://a.org/a.B/C", "bodyBase64": "AA=="}`, `{"command": ["a"]}`,
		`{"targetUrl": "http://u:p@h/%zz?{env:A}", "onExhausted": {"targetUrl": "x://", "onExhausted": {}},
			"policy": {"rules": [{}]}}`,
		`{"targetUrl": "https://[::1%25]:99999/", "notBefore": "9999-12-31T23:59:59Z", "tags": [null, 1, ""]}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		o, err := problem.Parse([]byte(body))
		if err != nil {
			return
		}
		made := (&Decoder{}).New(o, Header{Exec: true, Key: "k"})
		if o.Finish() != nil {
			return
		}
		if _, err := json.Marshal(EncodeTask(made, true)); err != nil {
			t.Fatalf("%q cannot be shown: %v", body, err)
		}
		if made.Target != nil {
			stored, err := json.Marshal(made.Target)
			testkit.Must(t, err)
			if _, err := task.DecodeTarget(made.Kind, stored); err != nil {
				t.Fatalf("%q cannot be read again: %v", body, err)
			}
			if r := request.Of(made); r != nil && request.CheckGuarded(r) != nil {
				t.Fatalf("%q made a request that is not sent: %v", body, request.CheckGuarded(r))
			}
		}
		if next, err := (&Decoder{}).Exhausted(made); err != nil {
			t.Fatalf("%q: %v, %v", body, next, err)
		}
	})
}

// BenchmarkTask reads and shows a task with a body of 256 bytes.
func BenchmarkTask(b *testing.B) {
	body := []byte(fmt.Sprintf(`{"targetUrl": "https://example.org/hook", "bodyJson": {"text": %q},
		"idempotencyKey": "order-1",
		"headers": {"X-A": "1"}}`, strings.Repeat("x", 256)))
	d := &Decoder{}
	for b.Loop() {
		o, err := problem.Parse(body)
		testkit.Must(b, err)
		made := d.New(o, Header{})
		testkit.Must(b, o.Finish())
		if _, err := json.Marshal(EncodeTask(made, false)); err != nil {
			b.Fatal(err)
		}
	}
}
