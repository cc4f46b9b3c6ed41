package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

var (
	everything = Grant{Read: true, Write: true, Exec: true}
	writing    = Grant{Read: true, Write: true}
)

// judged is a rig whose clients may do what *who says.
func judged(t testing.TB, who *Grant, allowExec bool) *rig {
	return newRig(t, func(c *Config) {
		c.Authorize = func(*http.Request) (Grant, error) { return *who, nil }
		c.AllowExec = allowExec
	})
}

// queued stores a task as retry add does.
func (g *rig) queued(t *task.Task) string {
	g.t.Helper()
	t.ID, t.IdempotencyKey = uuid.Must(uuid.NewV7()).String(), uuid.NewString()
	t.Policy, t.Status, t.Queue, t.CreatedAt = task.DefaultPolicy(), task.Pending, task.QueueWorker, time.Now()
	t.NextAttemptAt = t.CreatedAt
	_, err := g.queue.Add(g.t.Context(), []*task.Task{t})
	testkit.Must(g.t, err)
	return t.ID
}

// wrapped stores a task that retry -- COMMAND has carried, and that failed.
func (g *rig) wrapped(t *task.Task) string {
	g.t.Helper()
	now := time.Now()
	t.ID, t.Policy, t.Status, t.CreatedAt = uuid.Must(uuid.NewV7()).String(), task.DefaultPolicy(), task.Pending, now
	testkit.Must(g.t, g.queue.Journal.Claim(g.t.Context(), t, now))
	t.AttemptCount, t.Status = 1, task.InFlight
	a := task.Attempt{Number: 1, StartedAt: now, Outcome: task.Outcome{Exit: 1}}
	a.Decision.Verdict = task.VerdictFailed
	t.ApplyDecision(a, now)
	testkit.Must(g.t, g.queue.Record(g.t.Context(), t, a))
	testkit.Must(g.t, g.queue.Release(t.Number))
	return t.ID
}

func aCommand() *task.Task {
	return &task.Task{Kind: task.KindCommand, Command: []string{"deploy", "argument"}, Directory: "/secret/directory",
		Options: task.Options{Stdin: task.StdinNull, Capture: task.CaptureBoth}}
}

func aRequest(o task.Options) *task.Task {
	r := &request.Request{URL: "https://example.org/", Method: "POST"}
	return &task.Task{Kind: request.Kind, Target: r, Options: o}
}

// Who may not make a command can neither run one again nor move nor end one: also where a hook of a request is one, or
// what follows its end.
func TestCommandsAreForWhoMayMakeThem(t *testing.T) {
	tests := []struct {
		name      string
		who       Grant
		allowExec bool
		task      *task.Task
		want      bool
	}{
		{"admin", everything, true, aCommand(), true},
		{"admin without --allow-exec", everything, false, aCommand(), false},
		{"writer", writing, true, aCommand(), false},
		{"writer, request", writing, false, aRequest(task.Options{}), true},
		{"writer, request with a hook", writing, true, aRequest(task.Options{OnFailure: "deploy"}), false},
		{"writer, request with another hook", writing, true, aRequest(task.Options{OnStart: "deploy"}), false},
		{"writer, request that a command follows", writing, true,
			aRequest(task.Options{Exhausted: `{"command": ["deploy"]}`}), false},
		{"writer, request that a request follows", writing, true,
			aRequest(task.Options{Exhausted: `{"targetUrl": "https://example.org/"}`}), true},
		{"admin, request with a hook", everything, true, aRequest(task.Options{OnFailure: "deploy"}), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := judged(t, &tt.who, tt.allowExec)
			status := func(allowed int) int {
				if tt.want {
					return allowed
				}
				return http.StatusForbidden
			}
			path := "/retry-tasks/" + g.queued(tt.task)
			moved := g.ask("PATCH", path, `{"nextAttemptAt": "now"}`).wants(status(200))
			if want := "--allow-exec, and the client a token of scope admin"; !tt.want &&
				!strings.Contains(moved.problem().Hint, want) {
				t.Errorf("got hint %q, want %q", moved.problem().Hint, want)
			}
			g.ask("DELETE", path, "").wants(status(204))
			if _, err := g.queue.Cancel(t.Context(), tt.task.Number, time.Now()); tt.want == (err == nil) {
				t.Errorf("got %v from cancelling it, want it cancelled before: %v", err, tt.want)
			}
			g.ask("POST", path+"/requeue", "").wants(status(202))
			g.ask("GET", path, "").wants(200)
		})
	}
}

// Arguments, directory and output of a command are for who may make one.
func TestCommandsAreShownToWhoMayMakeThem(t *testing.T) {
	who := everything
	g := judged(t, &who, true)
	ended := task.Outcome{Exit: 1, Stdout: "output on stdout", Stderr: "output on stderr", Message: "message of it"}
	id := g.queued(aCommand())
	g.attempt(id, ended, task.VerdictExhausted)
	follows := aRequest(task.Options{Exhausted: `{"command": ["argument"]}`})
	g.queued(follows)
	secrets := []string{"argument", "/secret/directory", "output on stdout", "output on stderr", "message of it"}
	calls := []string{
		"/retry-tasks?view=full", "/retry-tasks/" + id + "?view=full", "/retry-tasks/" + id,
		"/retry-tasks/" + id + "/attempts", "/retry-tasks/" + follows.ID + "?view=full",
	}
	var all string
	for _, call := range calls {
		all += g.ask("GET", call, "").wants(200).body
	}
	for _, secret := range secrets {
		if !strings.Contains(all, secret) {
			t.Errorf("admin: got no %q, want it shown", secret)
		}
	}
	for _, who = range []Grant{{Read: true}, writing} {
		for _, call := range calls {
			a := g.ask("GET", call, "").wants(200)
			for _, secret := range secrets {
				if strings.Contains(a.body, secret) {
					t.Errorf("%+v: %s: got %q in %s", who, call, secret, a.body)
				}
			}
			if strings.HasSuffix(call, "attempts") && !strings.Contains(a.body, `"exitCode":1`) {
				t.Errorf("got %s, want the exit status", a.body)
			}
		}
	}
}

// The conditions of a command quote what it writes.
func TestConditionsOfCommandsAreShownToWhoMayMakeThem(t *testing.T) {
	who := everything
	g := judged(t, &who, true)
	const policy = `"policy": {"retryOn": ["stderr matches \"secret1\""], "stopOn": ["stderr matches \"secret2\""],
		"successOn": ["stderr matches \"secret3\""], "rules": [{"when": "stderr matches \"secret4\"", "backoff": "1s"}]}`
	ran := g.create(`{"command": ["deploy"], ` + policy + `}`)
	sent := g.create(`{"targetUrl": "https://example.org/", "policy": {"stopOn": ["body matches \"secret5\""]}}`)
	const one, full = "/retry-tasks/", "?view=full"
	calls := []string{"/retry-tasks" + full, one + ran + full, one + sent + full}
	secrets := func() (found string) {
		for _, call := range calls {
			body := g.ask("GET", call, "").wants(200).body
			for _, n := range "12345" {
				if strings.Contains(body, "secret"+string(n)) {
					found += string(n)
				}
			}
			found += " "
		}
		return found
	}
	if got, want := secrets(), "12345 1234 5 "; got != want {
		t.Errorf("admin: got %q, want %q", got, want)
	}
	for _, who = range []Grant{{Read: true}, writing} {
		if got, want := secrets(), "5  5 "; got != want {
			t.Errorf("%+v: got %q, want %q", who, got, want)
		}
	}
}

// Who may write policies does not change the command that follows a task.
func TestWhatFollowsKeepsItsPolicy(t *testing.T) {
	who := everything
	g := judged(t, &who, true)
	g.ask("PUT", "/retry-policies/esc", `{"maxAttempts": 2}`).wants(201)
	var made []string
	for _, id := range []string{`, "policyId": "esc"`, ""} {
		made = append(made, g.create(`{"targetUrl": "https://example.org/", "onExhausted": {"command": ["deploy"]`+id+`}}`))
	}
	who = writing
	g.ask("PUT", "/retry-policies/esc", `{"maxAttempts": 1000}`).wants(200)
	g.ask("PUT", "/retry-policies/default", `{"maxAttempts": 1000, "timeoutMs": 1}`).wants(201)
	for i, want := range []int{2, task.DefaultPolicy().Attempts} {
		stored, err := g.queue.Find(t.Context(), made[i])
		testkit.Must(t, err)
		next, err := g.server.Decoder().Exhausted(stored)
		testkit.Must(t, err)
		if p := next.Policy; p.Attempts != want || p.Timeout != 0 {
			t.Errorf("%s: got %d attempts, timeout %s, want %d and none", p.Name, p.Attempts, p.Timeout, want)
		}
	}
}

// Who may not run commands does not stop a requeue of them either.
func TestRequeuesOfCommandsAreStoppedByWhoMayRunThem(t *testing.T) {
	for _, tt := range []struct {
		name           string
		who            Grant
		allowExec, own bool // own: the requeue leaves commands out
		want           int
	}{
		{name: "admin", who: everything, allowExec: true, want: 204},
		{name: "admin without --allow-exec", who: everything, want: 403},
		{name: "writer", who: writing, allowExec: true, want: 403},
		{name: "writer, one without commands", who: writing, allowExec: true, own: true, want: 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := judged(t, &tt.who, tt.allowExec)
			_, err := g.queue.OwnOperation(t.Context(), "made") // so that this server does not carry it
			testkit.Must(t, err, g.queue.PutOperation(t.Context(), state.Operation{
				ID: "made", Status: requeueRunning, Exec: !tt.own, RatePerSecond: 1, CreatedAt: time.Now(),
			}))
			defer func() { testkit.Must(t, g.queue.DisownOperation("made")) }()
			g.ask("DELETE", "/requeues/made", "").wants(tt.want)
			want := map[int]string{204: "cancelled", 403: requeueRunning}[tt.want]
			if got := g.ask("GET", "/requeues/made", "").wants(200).json()["status"]; got != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
}

// A task that retry -- COMMAND carries is not the API's to change, whatever the client may do.
func TestTasksOfTheCommandLineStayIts(t *testing.T) {
	who := everything
	g := judged(t, &who, true)
	for _, id := range []string{g.wrapped(aCommand()), g.wrapped(aRequest(task.Options{}))} {
		path := "/retry-tasks/" + id
		for _, a := range []answer{
			g.ask("PATCH", path, `{"nextAttemptAt": "now"}`), g.ask("DELETE", path, ""), g.ask("POST", path+"/requeue", ""),
		} {
			p := a.wants(409).problem()
			if !strings.Contains(p.Detail, "not queued for workers") || !strings.HasSuffix(p.Hint, "requeue "+id) {
				t.Errorf("%s: got %+v, want the reason and a hint of the command line", a.asked, p)
			}
		}
		if got := g.ask("GET", path, "").wants(200).json()["status"]; got != "FAILED" {
			t.Errorf("got %v, want it as it was", got)
		}
	}
}

// A requeue of many tasks leaves out what its client could not requeue one by one, also in the next server.
func TestRequeuesLeaveCommandsOut(t *testing.T) {
	tests := []struct {
		name      string
		who       Grant
		allowExec bool
		restarted bool // the next server carries it, without --allow-exec
		want      string
	}{
		{"admin", everything, true, false, "2 of 3, 1 left"},
		{"admin without --allow-exec", everything, false, false, "1 of 3, 2 left"},
		{"writer", writing, true, false, "1 of 3, 2 left"},
		{"admin, and a server without --allow-exec", everything, true, true, "1 of 3, 2 left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := judged(t, &tt.who, tt.allowExec)
			g.wrapped(aCommand())
			g.attempt(g.queued(aRequest(task.Options{})), failed, task.VerdictExhausted)
			g.attempt(g.queued(aCommand()), task.Outcome{Exit: 1}, task.VerdictExhausted)
			place := "/requeues/made"
			if tt.restarted {
				g.server.Close()
				testkit.Must(t, g.queue.PutOperation(t.Context(), state.Operation{
					ID: "made", Matched: 3, Status: requeueRunning, Exec: true, RatePerSecond: 1000, CreatedAt: time.Now(),
					Filter: state.PageFilter{Statuses: []task.Status{task.Exhausted, task.Failed}},
				}))
				g = serving(t, g.queue, func(c *Config) { c.Authorize = g.server.Authorize })
			} else {
				place = g.ask("POST", "/requeues", `{"ratePerSecond": 1000}`).wants(202).header.Get("Location")
			}
			var got map[string]any
			testkit.Eventually(t, "done", func() bool {
				got = g.ask("GET", place, "").wants(200).json()
				return got["status"] == "done"
			})
			said := sprint(got["requeued"]) + " of " + sprint(got["matched"]) + ", " + sprint(got["skipped"]) + " left"
			if said != tt.want {
				t.Errorf("got %s, want %s", said, tt.want)
			}
		})
	}
}
