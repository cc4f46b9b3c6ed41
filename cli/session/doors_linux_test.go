package session

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// door is a call of the API, in such a form that it succeeds for who may make it.
type door struct {
	needs access.Scope                          // None: anybody may ask
	runs  bool                                  // it is about a command: the client needs the right to make one
	id    func(t *testing.T, s *Service) string // for the {parameter} of its path
	body  string
	want  int // where that is not 403: for who may not make a command
}

const (
	oneRequest = `{"targetUrl": "https://example.org/"}`
	oneCommand = `{"command": ["true"]}`
)

// doors has each operation of openapi.json, by its operationId; several in a row are one operation on other things.
func doors() map[string][]door {
	const read, write = access.Read, access.Write
	command, request := stored(true, task.Pending), stored(false, task.Pending)
	deadCommand, deadRequest := stored(true, task.Exhausted), stored(false, task.Exhausted)
	const now = `{"nextAttemptAt": "now"}`
	return map[string][]door{
		"createTask": {{needs: write, body: oneRequest}, {needs: write, runs: true, body: oneCommand, want: 422},
			{needs: write, runs: true, body: `{"targetUrl": "https://a.test/", "onExhausted": ` + oneCommand + `}`, want: 422}},
		"createTasks": {{needs: write, body: `{"tasks": [` + oneRequest + `]}`},
			{needs: write, runs: true, body: `{"tasks": [` + oneRequest + `, ` + oneCommand + `]}`, want: 422}},
		"listTasks":      {{needs: read}},
		"getTask":        {{needs: read, id: request}, {needs: read, id: command}},
		"rescheduleTask": {{needs: write, id: request, body: now}, {needs: write, runs: true, id: command, body: now}},
		"cancelTask":     {{needs: write, id: request}, {needs: write, runs: true, id: command}},
		"requeueTask":    {{needs: write, id: deadRequest}, {needs: write, runs: true, id: deadCommand}},
		"listAttempts":   {{needs: read, id: request}, {needs: read, id: command}},

		"listDeadLetters": {{needs: read}},
		"listRequeues":    {{needs: read}},
		"createRequeue":   {{needs: write, body: `{"filter": {"tag": "nothing"}}`}},
		"getRequeue":      {{needs: read, id: running(false)}, {needs: read, id: running(true)}},
		"cancelRequeue":   {{needs: write, id: running(false)}, {needs: write, runs: true, id: running(true)}},

		"listPolicies":  {{needs: read}},
		"createPolicy":  {{needs: write, body: `{"policyId": "made", "maxAttempts": 2}`}},
		"previewPolicy": {{needs: read, body: `{"policyId": "default"}`}},
		"getPolicy":     {{needs: read, id: named("default")}},
		"putPolicy":     {{needs: write, id: named("put"), body: `{"maxAttempts": 2}`}},
		"deletePolicy":  {{needs: write, id: policy}},

		"listTargets":  {{needs: read}},
		"getTarget":    {{needs: read, id: named("example.org")}},
		"putTarget":    {{needs: write, id: named("example.org"), body: `{"paused": true}`}},
		"putBlob":      {{needs: write, id: named(blobs.Hash([]byte("blob"))), body: "blob"}},
		"getBlob":      {{needs: read, id: blob}},
		"streamEvents": {{needs: read}},
		"metrics":      {{needs: read}},
		"openapi":      {{}},
		"healthz":      {{}},
		"readyz":       {{}},
		"home":         {{}},
	}
}

// client is a kind of caller.
type client struct {
	name    string
	server  *Service
	scope   access.Scope
	runs    bool     // it may make a command
	headers []string // names and values in turn
	nobody  bool     // another user
	always  int      // the answer to each call, whatever it is
	badType bool     // its body does not say that it is JSON
}

// want is the status that a client gets, or its class: 2 for 2xx.
func (c *client) want(operation string, d door) int {
	switch isBlob := operation == "putBlob"; {
	case c.always != 0:
		return c.always
	case c.badType && d.body != "" && !isBlob:
		return http.StatusUnsupportedMediaType
	case d.needs > access.None && c.scope == access.None:
		return http.StatusUnauthorized
	case c.scope < d.needs:
		return http.StatusForbidden
	case d.runs && !c.runs:
		return max(d.want, http.StatusForbidden)
	}
	return 2
}

// Who may ask for what: each call of openapi.json, by each kind of client. A call without a row fails.
func TestDoors(t *testing.T) {
	operations := described(t)
	rows := doors()
	if got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(operations)); !slices.Equal(got, want) {
		t.Fatalf("got rows for\n%s\nwant one for each operation of openapi.json\n%s", got, want)
	}
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			if c.nobody {
				testkit.NeedsRoot(t)
			}
			for operation, list := range rows {
				method, path, _ := strings.Cut(operations[operation], " ")
				for _, d := range list {
					at := path
					if begin := strings.Index(path, "{"); begin >= 0 {
						end := strings.Index(path, "}")
						at = path[:begin] + d.id(t, c.server) + path[end+1:]
					}
					got, said := c.ask(t, method, at, d.body)
					if want := c.want(operation, d); got != want && got/100 != want {
						t.Errorf("%s %s %s: got %d %s, want %d", method, path, d.body, got, said, want)
					}
				}
			}
		})
	}
}

// described returns method and path of each operation of openapi.json.
func described(t *testing.T) map[string]string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	testkit.Must(t, json.Unmarshal([]byte(testkit.Contents(t, "../../server/openapi.json")), &document))
	operations := map[string]string{}
	for path, methods := range document.Paths {
		for method, written := range methods {
			var operation struct {
				ID string `json:"operationId"`
			}
			if method != "parameters" {
				testkit.Must(t, json.Unmarshal(written, &operation))
				operations[operation.ID] = strings.ToUpper(method) + " " + path
			}
		}
	}
	return operations
}

// clients returns every kind of caller, each with its server.
func clients(t *testing.T) []client {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	bearer := func(name string, scope access.Scope) []string {
		token, err := access.Add(file, name, scope)
		testkit.Must(t, err)
		return []string{"Authorization", "Bearer " + token}
	}
	reader, writer, admin := bearer("r", access.Read), bearer("w", access.Write), bearer("a", access.Admin)
	ended := bearer("ended", access.Admin)
	testkit.Must(t, access.Remove(file, "ended"))
	open := func(f flags.ServeFlags) *Service {
		if f.Listen == "" {
			f.Listen = "127.0.0.1:0"
		}
		return opened(t, f)
	}
	loopback := open(flags.ServeFlags{})
	tokens := open(flags.ServeFlags{TokenFile: file, AllowExec: true})
	plain := open(flags.ServeFlags{TokenFile: file})
	socket := open(flags.ServeFlags{Listen: "unix:" + filepath.Join(dir, "s"), AllowExec: true})
	with := func(more ...string) []string { return append(slices.Clone(admin), more...) }
	return []client{
		{name: "no token, another user", server: loopback, nobody: true},
		{name: "no token, the own user", server: loopback, scope: access.Write},
		{name: "a token where none is in use", server: loopback, headers: admin},
		{name: "no token where they are in use", server: tokens},
		{name: "no token where they are in use, another user", server: tokens, nobody: true},
		{name: "token of scope read", server: tokens, headers: reader, scope: access.Read},
		{name: "token of scope write", server: tokens, headers: writer, scope: access.Write},
		{name: "token of scope admin", server: tokens, headers: admin, scope: access.Admin, runs: true},
		{name: "the same from another user", server: tokens, headers: admin, scope: access.Admin, runs: true,
			nobody: true},
		{name: "scope admin without --allow-exec", server: plain, headers: admin, scope: access.Admin},
		{name: "token that has ended", server: tokens, headers: ended},
		{name: "unknown token", server: tokens, headers: []string{"Authorization", "Bearer rtk_0123456789_x"}},
		{name: "wrong secret", server: tokens, headers: []string{admin[0], admin[1][:len(admin[1])-1] + "!"}},
		{name: "another scheme", server: tokens, headers: []string{admin[0], "Basic" + admin[1][len("Bearer"):]}},
		{name: "unix socket, the own user", server: socket, scope: access.Admin, runs: true},
		{name: "another Host", server: tokens, headers: with("Host", "evil.example"), always: 403},
		{name: "another Host without a token", server: loopback, headers: []string{"Host", "evil.example"}, always: 403},
		{name: "a page of another origin", server: tokens, headers: with("Origin", "https://evil.example"), always: 403},
		{name: "an image of another page", server: loopback, headers: []string{"Sec-Fetch-Site", "cross-site"},
			always: 403},
		{name: "a form", server: tokens, scope: access.Admin, runs: true, badType: true,
			headers: with("Content-Type", "application/x-www-form-urlencoded")},
		{name: "no type", server: tokens, scope: access.Admin, runs: true, badType: true,
			headers: with("Content-Type", "")},
	}
}

// opened starts a service on a journal of its own. Nothing of it is carried.
func opened(t *testing.T, f flags.ServeFlags) *Service {
	t.Helper()
	f.NoWorker = true
	host := testHost("RETRY_STATE_DIR=" + t.TempDir())
	lines := NewObserver(host, &flags.OutputFlags{Quiet: true})
	s := &Service{host: host, lines: lines}
	var err error
	s.queue, err = OpenQueue(t.Context(), host, "")
	testkit.Must(t, err)
	o := ServiceOptions{ServeFlags: &f, WorkerFlags: &flags.WorkerFlags{}, Lines: lines}
	testkit.Must(t, s.open(host, o, nil, false))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx, s.http, s.listener) }()
	t.Cleanup(func() {
		cancel()
		testkit.Must(t, <-served)
		testkit.Must(t, s.Close())
	})
	return s
}

// ask makes a call, and returns its status and the beginning of the answer.
func (c *client) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	testkit.Must(t, err)
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.headers); i += 2 {
		switch name, value := c.headers[i], c.headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		case name != "Content-Type" || body != "":
			r.Header.Set(name, value)
		}
	}
	address := c.server.listener.Addr()
	dial := func() (net.Conn, error) { return net.Dial(address.Network(), address.String()) }
	transport := http.Transport{DisableKeepAlives: true}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		if c.nobody {
			return testkit.DialAsNobody(dial)
		}
		return dial()
	}
	reply, err := transport.RoundTrip(r)
	testkit.Must(t, err)
	defer func() { _ = reply.Body.Close() }()
	said := make([]byte, 300)
	n := 0
	if reply.Header.Get("Content-Type") != "text/event-stream" {
		n, _ = io.ReadFull(reply.Body, said)
	}
	return reply.StatusCode, string(said[:n])
}

// stored returns what makes a task for a worker, which waits or is dead.
func stored(command bool, status task.Status) func(*testing.T, *Service) string {
	return func(t *testing.T, s *Service) string {
		t.Helper()
		made := &task.Task{
			ID: uuid.Must(uuid.NewV7()).String(), IdempotencyKey: uuid.NewString(), Policy: task.DefaultPolicy(),
			Status: task.Pending, Queue: task.QueueWorker, CreatedAt: time.Now(), NextAttemptAt: time.Now(),
		}
		made.Kind, made.Target = request.Kind, &request.Request{URL: "https://example.org/", Method: "POST"}
		if command {
			made.Kind, made.Target, made.Command = task.KindCommand, nil, []string{"true"}
			made.Options = task.Options{Stdin: task.StdinNull}
		}
		_, err := s.queue.Add(t.Context(), []*task.Task{made})
		testkit.Must(t, err)
		if status.Finished() {
			_, err = s.queue.Cancel(t.Context(), made.Number, time.Now())
			testkit.Must(t, err)
		}
		return made.ID
	}
}

func named(name string) func(*testing.T, *Service) string {
	return func(*testing.T, *Service) string { return name }
}

// running returns what makes a requeue that another server carries; exec is one of commands, too.
func running(exec bool) func(*testing.T, *Service) string {
	return func(t *testing.T, s *Service) string {
		t.Helper()
		o := state.Operation{
			ID: uuid.NewString(), Status: state.OperationRunning, Exec: exec, RatePerSecond: 1, CreatedAt: time.Now(),
		}
		_, err := s.queue.OwnOperation(t.Context(), o.ID)
		testkit.Must(t, err, s.queue.PutOperation(t.Context(), o))
		t.Cleanup(func() { _ = s.queue.DisownOperation(o.ID) })
		return o.ID
	}
}

func policy(t *testing.T, s *Service) string {
	t.Helper()
	p := task.DefaultPolicy()
	p.Name = "deleted"
	_, err := s.queue.PutPolicy(t.Context(), p, "", time.Now())
	testkit.Must(t, err)
	return p.Name
}

func blob(t *testing.T, s *Service) string {
	t.Helper()
	hash := blobs.Hash([]byte("kept"))
	_, _, err := s.carrier.Blobs.Put(t.Context(), hash, strings.NewReader("kept"), 4)
	testkit.Must(t, err)
	return hash
}
