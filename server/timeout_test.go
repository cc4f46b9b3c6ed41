package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/task"
)

// An attempt has a slot of the worker until its timeout: the server bounds that, however a request comes by it.
func TestTimeoutsAreBounded(t *testing.T) {
	slow := task.DefaultPolicy()
	slow.Name, slow.Timeout = "slow", time.Hour
	const (
		more = "start the server with a larger --max-timeout"
		hour = "the timeout is 1h, more than 15m"
	)
	tests := map[string]struct {
		path, body string
		max        time.Duration // of the server; 0 is the default
		want       string        // pointer, space, detail; empty where it is accepted
		hint       string
	}{
		"of a task": {"/retry-tasks", `"timeoutMs": 900001`, 0,
			"/timeoutMs the timeout is 15m1ms, more than 15m", more},
		"the most": {"/retry-tasks", `"timeoutMs": 900000`, 0, "", ""},
		"of a server": {"/retry-tasks", `"timeoutMs": 5001`, 5 * time.Second,
			"/timeoutMs the timeout is 5.001s, more than 5s", more},
		"a server with more":  {"/retry-tasks", `"timeoutMs": 3600000`, time.Hour, "", ""},
		"a server without":    {"/retry-tasks", `"timeoutMs": 36000000000`, wire.NoTimeout, "", ""},
		"of an inline policy": {"/retry-tasks", `"policy": {"timeoutMs": 3600000}`, 0, "/policy/timeoutMs " + hour, more},
		"of a named policy": {"/retry-tasks", `"policyId": "slow"`, 0, "/policyId the policy's timeout is 1h, more than 15m",
			"give timeoutMs, or " + more},
		"less than its policy's": {"/retry-tasks", `"policyId": "slow", "timeoutMs": 1000`, 0, "", ""},
		"of what follows": {"/retry-tasks", `"onExhausted": {"targetUrl": "https://example.org/", "timeoutMs": 3600000}`, 0,
			"/onExhausted/timeoutMs " + hour, more},
		"of a policy": {"/retry-policies", `"policyId": "p", "timeoutMs": 3600000`, 0, "/timeoutMs " + hour, more},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(c *Config) {
				c.Limits.Timeout, c.Policies = test.max, func() []task.Policy { return []task.Policy{slow} }
			})
			body := "{" + test.body + "}"
			if test.path == "/retry-tasks" {
				body = `{"targetUrl": "https://example.org/", ` + test.body + "}"
			}
			if test.want == "" { // openapi.json as the tests read it has the usual maximum
				got, err := g.client.Post(g.url+test.path, "application/json", strings.NewReader(body))
				testkit.Must(t, err)
				if testkit.Must(t, got.Body.Close()); got.StatusCode != http.StatusCreated {
					t.Errorf("got %d, want 201", got.StatusCode)
				}
				return
			}
			errs := g.ask("POST", test.path, body).wants(422).problem().Errors
			if len(errs) != 1 || errs[0].Pointer+" "+errs[0].Detail != test.want || errs[0].Hint != test.hint {
				t.Errorf("got %+v, want %s, hint %s", errs, test.want, test.hint)
			}
			if list := g.ask("GET", "/retry-tasks", "").wants(200).body; !strings.Contains(list, `"tasks":[]`) {
				t.Errorf("got %s, want no task", list)
			}
		})
	}
}

// openapi.json says what this server allows.
func TestOpenAPIHasTheMaximumOfTimeouts(t *testing.T) {
	for _, test := range []struct{ max, want time.Duration }{{0, 15 * time.Minute}, {time.Hour, time.Hour}} {
		g := newRig(t, func(c *Config) { c.Limits.Timeout = test.max })
		components := g.ask("GET", "/openapi.json", "").wants(200).json()["components"].(map[string]any)
		schemas := components["schemas"].(map[string]any)
		for _, name := range []string{"NewTask", "NewPolicy"} {
			field := schemas[name].(map[string]any)["properties"].(map[string]any)["timeoutMs"].(map[string]any)
			if got := fmt.Sprint(field["maximum"]); got != fmt.Sprint(test.want.Milliseconds()) {
				t.Errorf("%s: got %s, want %d", name, got, test.want.Milliseconds())
			}
		}
	}
}
