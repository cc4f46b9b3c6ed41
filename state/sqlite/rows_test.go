package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

func TestPhaseIsAFraction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number, salt := rapid.Int64Range(1, math.MaxInt64).Draw(t, "number"), rapid.Uint64().Draw(t, "salt")
		if u := phase(number, salt); !(u >= 0 && u < 1) {
			t.Fatalf("phase(%d, %#x) = %v", number, salt, u)
		}
	})
	if u := phase(1, math.MaxUint64); !(u >= 0 && u < 1) {
		t.Errorf("with the largest salt: %v", u)
	}
}

// Tasks that were made one after the other part as evenly as possible: by the three-distance theorem n multiples of the
// golden ratio leave no gap larger than about 1.9/n, on a circle, from whichever number they start.
func TestConsecutivePhasesAreEvenlySpread(t *testing.T) {
	for _, first := range []int64{1, 2, 1000, 1e6, 1e9} {
		for _, salt := range []uint64{0, 0x9e3779b97f4a7c15, math.MaxUint64} {
			for _, n := range []int{1, 2, 3, 5, 8, 16, 100, 1000, 1597, 10_000} {
				if gap := largestGap(first, n, salt); gap > 2/float64(n) {
					t.Errorf("%d tasks from number %d on: a gap of %.3f/n", n, first, gap*float64(n))
				}
			}
		}
	}
}

func largestGap(first int64, n int, salt uint64) float64 {
	phases := make([]float64, n)
	for i := range phases {
		phases[i] = phase(first+int64(i), salt)
	}
	slices.Sort(phases)
	largest := phases[0] + 1 - phases[n-1]
	for i := 1; i < n; i++ {
		largest = max(largest, phases[i]-phases[i-1])
	}
	return largest
}

// The formula of SPEC 2.2: frac(φ · task number + hash(machine)).
func TestPhaseFormula(t *testing.T) {
	const half = 1 << 63
	for _, test := range []struct {
		number int64
		salt   uint64
		want   float64
	}{{1, 0, math.Phi - 1}, {2, 0, 2*math.Phi - 3}, {1, half, math.Phi - 1.5}, {3, half, 3*math.Phi + 0.5 - 5}} {
		if got := phase(test.number, test.salt); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("phase(%d, %#x) = %v, want %v", test.number, test.salt, got, test.want)
		}
	}
}

// A task has one phase for life, whichever process reads it; another machine's tasks of the same numbers have others.
func TestPhaseOfATask(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	if got := stored(t, j, tk.ID).History.Phase; got != tk.History.Phase || machineSalt() != j.salt {
		t.Errorf("read as %v, written as %v", got, tk.History.Phase)
	}
	j.salt++
	j.salt <<= 20
	if stored(t, j, tk.ID).History.Phase == tk.History.Phase {
		t.Error("the machine does not matter")
	}
}

func TestArgvComesBackUnchanged(t *testing.T) {
	tests := map[string][]string{
		"none":              nil,
		"one":               {"true"},
		"empty strings":     {"", "", "printf", "", "%s\n", ""},
		"one empty string":  {""},
		"two empty strings": {"", ""},
		"white space":       {"sh", "-c", "echo 'a\tb'\nexit 1\n", " ", "\n"},
		"invalid UTF-8":     {"\xff", "a\xc3", "\xed\xa0\x80", "\xf0\x9f"},
		"control and bidi":  {"\x1b[2J", "\x01\x7f", "\u202e", "'\"\\$`"},
		"long":              {strings.Repeat("x", 1<<20)},
		"many":              slices.Repeat([]string{"", "x"}, 10_000),
	}
	j := open(t)
	for name, argv := range tests {
		t.Run(name, func(t *testing.T) {
			tk := newTask()
			tk.Command = argv
			must(t, claimed(j, tk, epoch))
			if got := stored(t, j, tk.ID).Command; !slices.Equal(got, argv) {
				t.Errorf("got %d arguments %.200q", len(got), got)
			}
		})
	}
}

// Any byte but NUL, which no argument and no path can hold.
func anyText() *rapid.Generator[string] {
	bytes := rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) })
	return rapid.OneOf(rapid.StringMatching(`[^\x00]*`), bytes)
}

func TestEveryTextComesBackUnchanged(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		tk := newTask()
		tk.Command = rapid.SliceOf(anyText()).Draw(t, "argv")
		tk.Name = anyText().Draw(t, "name")
		tk.Environment = rapid.SliceOf(anyText()).Draw(t, "environment")
		tk.Directory = anyText().Draw(t, "directory")
		tk.IdempotencyKey = anyText().Draw(t, "key")
		outcome := task.Outcome{Exit: 1, Message: anyText().Draw(t, "message"), Signal: anyText().Draw(t, "signal")}
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, outcome, succeeded, epoch)) // another may have the name
		got := stored(t, j, tk.ID)
		if g, w := show(got, attempts(t, j, got.Number)), show(tk, []task.Attempt{tk.Last}); g != w {
			t.Fatalf("stored\n%s\nwant\n%s", g, w)
		}
	})
}

// Times are kept to the microsecond, durations too, far into the past and the future.
func TestTimesComeBackToTheMicrosecond(t *testing.T) {
	j := open(t)
	for _, at := range []time.Time{
		time.Unix(0, 1000), time.Unix(-1, 999_999_999), epoch, epoch.In(time.FixedZone("", 5*3600)),
		time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	} {
		tk := newTask()
		tk.CreatedAt = at
		must(t, claimed(j, tk, at))
		must(t, recorded(j, tk, task.Outcome{Exit: 1, Duration: 1_234_567 * time.Nanosecond}, retryIn(time.Second), at))
		got := stored(t, j, tk.ID)
		for name, pair := range map[string][2]time.Time{
			"created": {got.CreatedAt, at}, "history": {got.History.Began, at}, "started": {got.Last.StartedAt, at},
			"next": {got.NextAttemptAt, at.Add(time.Second)},
		} {
			if late := pair[1].Sub(pair[0]); late < 0 || late >= time.Microsecond {
				t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
			}
		}
		if d := got.Last.Outcome.Duration; d != 1234*time.Microsecond {
			t.Errorf("the attempt took %v", d)
		}
	}
}

// The policy that is read back decides as the one that was written.
func TestPolicyComesBackUnchanged(t *testing.T) {
	policies := map[string]task.Policy{"zero limits": {Name: "zero", Backoff: parsePolicy(t, "constant:0", "none").Backoff}}
	for _, p := range backoff.Presets() {
		policy, err := task.BuiltinPolicy(p.Name)
		must(t, err)
		policies[p.Name] = policy
	}
	for _, spec := range [][2]string{
		{"exp:1s*1.5..30s", ""}, {"linear:5s+2s..1m", "full"}, {"fib:1s", "equal"}, {"poly:15s+n^2.5..1h", "decorrelated"},
		{"list:1s,0s,1h30m", "30%"}, {"constant:5m", "add:1s..5s"}, {"exp:100ms", "add:30s*n"}, {"buckets:3", ""}, {"constant:90d", "phase"},
	} {
		policies[spec[0]+" "+spec[1]] = parsePolicy(t, spec[0], spec[1])
	}
	full := parsePolicy(t, "exp:2s..2m", "phase")
	full.Attempts, full.Timeout, full.KillAfter, full.Budget = 0, 1500*time.Millisecond, time.Millisecond, 30*24*time.Hour
	full.ResetAfter, full.Consecutive = time.Hour, 3
	full.RetryOn, full.StopOn, full.SuccessOn = conditions(t, "1,75", "100-120"), conditions(t, "SIGSEGV"), conditions(t, "0", "timeout")
	policies["every field"] = full

	j := open(t)
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			tk := newTask()
			tk.Policy = policy
			must(t, claimed(j, tk, epoch))
			samePolicy(t, stored(t, j, tk.ID).Policy, policy)
		})
	}
}

func conditions(t *testing.T, texts ...string) []task.Condition {
	t.Helper()
	list, err := task.ParseConditions(texts)
	must(t, err)
	return list
}

func samePolicy(t *testing.T, got, want task.Policy) {
	t.Helper()
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	chance := backoff.Chance{Phase: 0.25, Rand: func() float64 { return 0.75 }}
	for n := 1; n <= 30; n++ {
		if g, w := got.Backoff.Delay(n, chance), want.Backoff.Delay(n, chance); g != w {
			t.Errorf("the delay before retry %d is %v, was %v", n, g, w)
		}
	}
	for _, o := range []task.Outcome{exit(0), exit(1), exit(75), exit(110), {Exit: 139, Signal: "SIGSEGV"}, {Exit: 143, Error: task.ErrorTimeout}} {
		e := task.Evidence{Outcome: o}
		g, _ := got.Classify(e)
		if w, _ := want.Classify(e); g != w {
			t.Errorf("%+v is of class %v, was %v", o, g, w)
		}
	}
	// Conditions hold functions, which have no equality; what they match was compared above.
	for _, p := range []*task.Policy{&got, &want} {
		p.Backoff, p.RetryOn, p.StopOn, p.SuccessOn = backoff.Spec{}, nil, nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func asJSON(t *testing.T, p task.Policy) string {
	t.Helper()
	data, err := json.Marshal(p)
	must(t, err)
	return string(data)
}

func TestListNewestFirst(t *testing.T) {
	j := open(t)
	var newest []string
	for range 5 {
		newest = slices.Insert(newest, 0, inFlight(t, j).ID)
	}
	for limit, want := range map[int][]string{0: newest, 1: newest[:1], 3: newest[:3], 5: newest, 99: newest} {
		tasks, err := storetest.List(j, state.Filter{Limit: limit})
		must(t, err)
		var got []string
		for _, tk := range tasks {
			got = append(got, tk.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("List(%d): got %q, want %q", limit, got, want)
		}
	}
	if n := count(t, j, "tasks"); n != 5 {
		t.Errorf("got %d tasks, want 5", n)
	}
}

// A history is gathered from what was decided: the conditions may have looked at output that is not kept.
func TestDecisionsComeBack(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, claimed(j, tk, epoch))
	steps := []struct {
		outcome  task.Outcome
		decision task.Decision
	}{
		{exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: 2 * time.Second}},
		{exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: time.Second, Success: true}}, // an exit of 1 that is a success
		{exit(0), task.Decision{Verdict: task.VerdictRetry, Delay: time.Second, Rule: 2}},       // and one of 0 that is none
		{exit(0), task.Decision{Verdict: task.VerdictRetry, Delay: 3 * time.Second, Rule: 2}},
	}
	for i, s := range steps {
		if i > 0 {
			must(t, claimed(j, tk, epoch))
		}
		must(t, recorded(j, tk, s.outcome, s.decision, epoch))
	}
	for i, a := range attempts(t, j, tk.Number) {
		if got, want := a.Decision, steps[i].decision; got != want {
			t.Errorf("attempt %d: %+v, want %+v", a.Number, got, want)
		}
	}
	must(t, j.Release(tk.Number))
	got, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	tk.History.Began = tk.History.Began.Truncate(time.Microsecond)
	got.History.Began = got.History.Began.UTC()
	if got.History != tk.History {
		t.Errorf("got  %+v\nwant %+v", got.History, tk.History)
	}
}

// What an older retry wrote down says nothing of successes: an exit of 0 was one.
func TestDecisionsOfAnOlderRetry(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, exit(0), retryIn(time.Second), epoch))
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, exit(1), retryIn(time.Second), epoch))
	_, err := rawExec(j, "UPDATE attempts SET success = NULL, rule = NULL")
	must(t, err)
	list := attempts(t, j, tk.Number)
	if !list[0].Decision.Success || list[1].Decision.Success || list[0].Decision.Rule != 0 {
		t.Errorf("got %+v and %+v", list[0].Decision, list[1].Decision)
	}
}

// requests are tasks of HTTP: the least that one asks for, and everything that it can.
func requests() map[string]*request.Request {
	none := ""
	return map[string]*request.Request{
		"least": {Method: "GET", URL: "http://host/"},
		"text":  {Method: "POST", URL: "http://host/caf\xe9", Body: []request.Part{{Text: []byte("\x00caf\xe9 true")}}},
		"most": {
			Method: "POST", MethodGiven: true, URL: "https://u:p@host:8/a?b=\xc3\xa9#c", Header: []string{"A: {env:B}", "C:", "D;"}, User: "n:p",
			Body: []request.Part{
				{Text: []byte("\x00\xff\n"), Encode: true}, {File: "/dir/a b", Size: 3, Time: epoch.UTC(), Strip: true},
				{File: request.StdinFile, Name: "f", FileName: "g", Type: "text/plain"},
			},
			Boundary: "b", Get: true, Upload: true, Idempotent: true, Keyed: true, KeyStyle: request.KeySF, KeyTTL: 24 * time.Hour, MaxRetryAfter: time.Hour,
			Network: request.Network{
				ConnectTimeout: time.Second, Proxy: "p", NoProxy: &none, UnixSocket: "/s", Resolve: []string{"a:1:b"}, Insecure: true,
				CACert: "/c", Cert: "/d", Key: "/e", HTTP1: true, Compressed: true, MaxRedirects: 50,
			},
			Output: "/o", Include: true, HideFail: true,
			Netrc: "/n", NetrcNeeded: true, Digest: true, CookieFiles: []string{"/j"}, CookieJar: "/k", WriteOut: "%{json}", Sign: true, Guarded: true,
		},
	}
}

// sending returns a task of HTTP that no journal knows yet.
func sending(r *request.Request) *task.Task {
	t := newTask()
	t.Kind, t.Command, t.Target = request.Kind, nil, r
	return t
}

// A body of one text is stored as it is. Requests that differ in it alone share what is decoded, and nothing that a
// task changes; without its row's body, a request is damaged.
func TestTheBodyIsStoredBesideTheRequest(t *testing.T) {
	j := open(t)
	var tasks [2]*task.Task
	for i, body := range []string{"one", "two"} {
		tasks[i] = sending(&request.Request{Method: "POST", URL: "http://host/", Header: []string{"A: b"},
			Body: []request.Part{{Text: []byte(body)}}})
		must(t, claimed(j, tasks[i], epoch))
	}
	first, second := request.Of(stored(t, j, tasks[0].ID)), request.Of(stored(t, j, tasks[1].ID))
	first.Body[0].Size, first.Header = 7, append(first.Header, "C: d")
	got := append(second.Header, "E: f")[1]
	if string(second.Body[0].Text) != "two" || second.Body[0].Size != 0 || got != "E: f" || first.Header[1] != "C: d" {
		t.Errorf("got %+v and %+v, want two requests of their own", first, second)
	}
	var text string
	must(t, j.conn.Row("SELECT url || body || substr(request, instr(request, '\"body\"'), 12) FROM tasks WHERE number = ?",
		[]any{tasks[0].Number}, &text))
	if want := `http://host/one"body":true,`; text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	spoil(t, j, tasks[1], "body = NULL")
	if got := stored(t, j, tasks[1].ID); got.Damage == nil || got.Damage.Error() != "request: its body is missing" {
		t.Errorf("got damage %v, want that the body is missing", got.Damage)
	}
}

func TestARequestComesBackUnchanged(t *testing.T) {
	j := open(t)
	for name, asked := range requests() {
		t.Run(name, func(t *testing.T) {
			for i, fields := 0, reflect.ValueOf(*asked); name == "most" && i < fields.NumField(); i++ {
				if fields.Field(i).IsZero() {
					t.Errorf("%s is not tried", fields.Type().Field(i).Name)
				}
			}
			tk := sending(asked)
			must(t, claimed(j, tk, epoch))
			must(t, recorded(j, tk, refused(503), retryIn(time.Minute), epoch))
			must(t, j.Release(tk.Number))
			adopted, err := j.Adopt(t.Context(), tk.Number)
			must(t, err)
			for _, got := range []*task.Task{stored(t, j, tk.ID), adopted} {
				if !reflect.DeepEqual(got.Target, asked) || got.Kind != request.Kind || got.Command != nil || got.Damage != nil {
					t.Errorf("got  %+v of %s\nwant %+v", got.Target, showTask(got), asked)
				}
			}
		})
	}
}

// refused is what an attempt came to that was answered so.
func refused(status int) task.Outcome {
	return task.Outcome{Exit: 22, Message: "m", Duration: time.Second, Reply: &task.Reply{
		Status: status, Written: 2, ServerDelay: 90 * time.Second, Body: "why\n", Default: task.Eligibility{Event: "503"},
		Phases: task.Phases{DNS: time.Millisecond, Connect: 2 * time.Microsecond, TLS: time.Minute, FirstByte: 4 * time.Hour, Total: time.Second},
	}}
}

// Of an exchange all comes back but what only the decision needed.
func TestAnExchangeComesBack(t *testing.T) {
	want := *refused(503).Reply
	want.Body = ""
	tests := map[string]struct {
		outcome task.Outcome
		want    *task.Reply
	}{
		"a command's": {exit(1), nil},
		"answered":    {refused(503), &want},
		"before the request": {
			task.Outcome{Exit: 6, Error: task.ErrorDNS, Reply: &task.Reply{}, Duration: time.Second},
			&task.Reply{Phases: task.Phases{Total: time.Second}},
		},
		"none, since its owner died": {task.Crashed(), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := sending(requests()["least"])
			must(t, claimed(j, tk, epoch))
			must(t, recorded(j, tk, tt.outcome, retryIn(time.Minute), epoch))
			history, err := j.History(t.Context(), tk.Number)
			must(t, err)
			for _, a := range append(history, attempts(t, j, tk.Number)[0], stored(t, j, tk.ID).Last) {
				if !reflect.DeepEqual(a.Outcome.Reply, tt.want) {
					t.Errorf("got %+v, want %+v", a.Outcome.Reply, tt.want)
				}
			}
		})
	}
}

// A body that conditions looked at is not kept: what is kept of a reply is what the executor captured.
func TestABodyIsKeptWhereItWasCaptured(t *testing.T) {
	j := open(t)
	for _, captured := range []string{"", "why\n"} {
		tk, outcome := sending(requests()["least"]), refused(503)
		outcome.Stdout = captured
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, outcome, failed, epoch))
		if got := attempts(t, j, tk.Number)[0].Outcome; got.Stdout != captured || got.Stderr != "" || got.Reply.Body != "" {
			t.Errorf("kept %q and %q, want %q", got.Stdout, got.Stderr, captured)
		}
	}
}

// Whoever goes on with a task knows how many attempts in a row ended in the same event, and until when its key is good.
func TestAnAdoptedTaskKnowsItsEvents(t *testing.T) {
	j := open(t)
	tk := sending(&request.Request{Method: "POST", URL: "http://host/", KeyTTL: time.Hour})
	for range 2 {
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, refused(503), retryIn(time.Minute), epoch))
	}
	must(t, j.Release(tk.Number))
	got, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	want := task.History{}
	for range 2 {
		want = want.After(&tk.Policy, refused(503), retryIn(time.Minute))
	}
	if got.History.Event != want.Event || got.History.InARow != want.InARow || want.InARow != 2 || !got.History.Expires.Equal(got.CreatedAt.Add(time.Hour)) {
		t.Errorf("got %+v, want %+v", got.History, want)
	}
}

// Numbers that no retry wrote are read as what is possible, and an exchange that cannot be read as an empty one.
func TestADamagedExchangeIsNoDamage(t *testing.T) {
	empty := task.Reply{Phases: task.Phases{Total: time.Second}}
	high := empty
	high.ServerDelay = conn.Longest
	for text, want := range map[string]task.Reply{
		`{`: empty, `[]`: empty, `null`: empty, `{"status":"x"}`: empty, `{"status":-1,"written":-1,"dns_us":-9}`: empty,
		`{"server_delay_us":9223372036854775807}`: high,
	} {
		j := open(t)
		tk := sending(requests()["least"])
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, refused(503), retryIn(time.Minute), epoch))
		_, err := rawExec(j, "UPDATE attempts SET exchange = ?", text)
		must(t, err)
		got := stored(t, j, tk.ID)
		if got.Damage != nil || !reflect.DeepEqual(*got.Last.Outcome.Reply, want) {
			t.Errorf("%s: got %+v, %v", text, got.Last.Outcome.Reply, got.Damage)
		}
	}
}

// Nobody goes on with a task of HTTP that does not say what it asks for.
func TestARequestThatCannotBeRead(t *testing.T) {
	for set, want := range map[string]string{
		"request = NULL":                            "request: there is none",
		"request = '{'":                             "request: unexpected end",
		"request = '[]'":                            "request: array where another",
		"request = '{}'":                            "request: it names no method",
		"url = NULL":                                "request: it names no URL",
		`request = '{"method":7,"url":"u"}'`:        "request: number where another",
		`request = json_remove(request,'$.method')`: "request: it names",
	} {
		t.Run(set, func(t *testing.T) {
			j := open(t)
			tk := sending(requests()["least"])
			must(t, claimed(j, tk, epoch))
			must(t, j.Release(tk.Number))
			spoil(t, j, tk, set)
			if got := stored(t, j, tk.ID).Damage; got == nil || !strings.HasPrefix(got.Error(), want) {
				t.Errorf("got %v, want %s", got, want)
			}
			checkReports(t, j)
			checkSetApart(t, j, tk)
		})
	}
}

// A stdin that a request sends goes with the task, as one that is replayed to a command.
func TestTheStdinOfARequestGoesWithIt(t *testing.T) {
	j := open(t)
	tk := sending(&request.Request{Method: "POST", URL: "http://host/", Body: []request.Part{{File: request.StdinFile}}})
	must(t, claimed(j, tk, epoch))
	file, err := j.KeepInput(tk)
	must(t, err)
	must(t, j.CompleteInput(tk, file))
	must(t, file.Close())
	kept, err := j.Input(tk)
	must(t, err)
	must(t, kept.Close())
	if err := j.Requeue(t.Context(), stored(t, j, tk.ID), epoch); !errors.Is(err, state.ErrUnfinished) {
		t.Errorf("requeued before the end: %v", err)
	}
	must(t, recorded(j, tk, refused(404), failed, epoch))
	if _, err := j.Input(tk); !errors.Is(err, state.ErrInputLost) {
		t.Errorf("after the end: %v", err)
	}
	if err := j.Requeue(t.Context(), stored(t, j, tk.ID), epoch); !errors.Is(err, state.ErrInputDropped) {
		t.Errorf("requeued: %v", err)
	}
}

func TestAdoptReturnsTheTaskAsItStands(t *testing.T) {
	tests := map[string][]write{
		"in its first attempt":  {claiming()},
		"waiting":               {claiming(), recording(retryIn(time.Minute))},
		"in its second attempt": {claiming(), recording(retryIn(time.Minute)), claiming()},
		"told to stop":          {claiming(), recording(retryIn(time.Minute)), settling(interrupted)},
		"stopped in an attempt": {claiming(), recording(interrupted)},
	}
	for name, writes := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := newTask()
			apply(t, j, tk, writes...)
			must(t, j.Release(tk.Number))
			got, err := j.Adopt(t.Context(), tk.Number)
			must(t, err)
			if g, w := showTask(got), showTask(tk); g != w {
				t.Errorf("adopted\n%s\nwant\n%s", g, w)
			}
			if got.Last.Number != got.AttemptCount || (got.Last.Decision.Verdict == "") != (got.Status == task.InFlight) {
				t.Errorf("%s, its last attempt %s", got.Status, showAttempt(got.Last))
			}
		})
	}
}

// An adopted task goes on as one that never stopped: crash, claim, end.
func TestAnAdoptedTaskGoesOn(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	got, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	must(t, recorded(j, got, task.Crashed(), interrupted, epoch.Add(time.Hour)))
	apply(t, j, got, claiming(), recording(succeeded))
	if end := stored(t, j, tk.ID); end.Status != task.Succeeded || end.AttemptCount != 2 || end.IdempotencyKey != tk.IdempotencyKey {
		t.Errorf("ended as %s", showTask(end))
	}
	if _, err := j.Adopt(t.Context(), tk.Number); !errors.Is(err, state.ErrFinished) {
		t.Errorf("adopted again: %v", err)
	}
}

// The history that is gathered from the attempts is the one that was lived through.
func TestAdoptGathersTheHistory(t *testing.T) {
	j := open(t)
	policy := parsePolicy(t, "exp:1s", "phase")
	policy.Consecutive, policy.ResetAfter = 3, time.Minute
	rapid.Check(t, func(t *rapid.T) {
		tk := newTask()
		tk.Policy = policy
		must(t, claimed(j, tk, epoch))
		for range rapid.IntRange(0, 8).Draw(t, "attempts") {
			o := task.Outcome{
				Exit:     rapid.SampledFrom([]int{0, 1, 75, task.NoExit}).Draw(t, "exit"),
				Duration: time.Duration(rapid.Int64Range(0, 2*time.Minute.Microseconds()).Draw(t, "duration")) * time.Microsecond,
			}
			d := interrupted
			if o.IsCrash() {
				o = task.Crashed()
			} else if rapid.Bool().Draw(t, "retry") {
				d = retryIn(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "delay")) * time.Microsecond)
				d.Shortened = rapid.Bool().Draw(t, "shortened")
			}
			must(t, recorded(j, tk, o, d, epoch))
			if rapid.Bool().Draw(t, "told to stop") {
				must(t, settled(j, tk, interrupted, epoch))
			}
			must(t, claimed(j, tk, epoch))
		}
		got, err := j.Adopt(t.Context(), tk.Number)
		must(t, err)
		want := tk.History
		want.Began = got.History.Began // compared to the microsecond elsewhere
		if got.History != want {
			t.Fatalf("gathered %+v\nlived    %+v", got.History, want)
		}
	})
}

// spoil changes the rows of one task, whatever the tables would say to it.
func spoil(t *testing.T, j *Journal, tk *task.Task, set string) {
	t.Helper()
	_, err := rawExec(j, "UPDATE tasks SET "+set+" WHERE number = ?", tk.Number)
	must(t, err)
}

// What cannot be read of a task is said of it, and nobody goes on with it; the others are read and adopted as ever.
func TestDamageStaysWithItsTask(t *testing.T) {
	for set, want := range map[string]string{
		"policy = '{'":                                 "policy: unexpected end",
		`policy = '{"backoff": "tea:1s"}'`:             "policy: policy",
		`policy = json_set(policy, '$.attempts', -1)`:  "policy: a limit is negative",
		`policy = json_set(policy, '$.budget_ms', -1)`: "policy: a limit is negative",
		"options = '[]'":                               "options: array where another",
		"argv = x''":                                   "argv: it names no command",
		"attempt_count = -5":                           "attempt_count: -5",
		"attempt_count = 9223372036854775807":          "attempt_count: 9223372036854775807, and the latest attempt is 1",
		"requeued_after = 2":                           "requeued_after: 2 of 1 attempts",
	} {
		t.Run(set, func(t *testing.T) {
			j := open(t)
			damaged, sound := inFlight(t, j), inFlight(t, j)
			must(t, errors.Join(j.Release(damaged.Number), j.Release(sound.Number)))
			spoil(t, j, damaged, set)
			list, err := storetest.List(j, state.Filter{})
			must(t, err)
			if len(list) != 2 || list[0].Damage != nil || list[1].Damage == nil || !strings.HasPrefix(list[1].Damage.Error(), want) {
				t.Fatalf("listed %+v, want %q of the second", list, want)
			}
			if list[1].ID != damaged.ID || list[1].Directory != damaged.Directory || list[1].Status != task.InFlight {
				t.Errorf("of the damaged one remains %s", showTask(list[1]))
			}
			checkSetApart(t, j, damaged)
			if got, err := j.Adopt(t.Context(), sound.Number); err != nil || got.ID != sound.ID {
				t.Errorf("the sound one: %v", err)
			}
		})
	}
}

// checkSetApart asserts that nobody can adopt a task, and that it can be cancelled and pruned.
func checkSetApart(t *testing.T, j *Journal, tk *task.Task) {
	t.Helper()
	if got, err := j.Adopt(t.Context(), tk.Number); got != nil || !errors.Is(err, state.ErrDamaged) {
		t.Errorf("adopted %v, %v", got, err)
	}
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	if err := j.Requeue(t.Context(), stored(t, j, tk.ID), epoch); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("requeued: %v", err)
	}
	if n, _, err := j.Prune(t.Context(), state.Retention{Rows: 100}); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
}

// With a count that is not the number of the latest attempt, the next claim would meet one that is there, or leave some
// out.
func TestACountThatIsNotTheLatestAttemptIsDamage(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	must(t, claimed(j, tk, epoch))
	for count, want := range map[string]bool{"0": true, "1": true, "2": false, "3": true} {
		spoil(t, j, tk, "attempt_count = "+count)
		if got := stored(t, j, tk.ID).Damage; (got != nil) != want {
			t.Errorf("%s of 2: %v", count, got)
		}
	}
}

// Flags are 0 or not: none is damage.
func TestFlagsAreReadAsNumbers(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	spoil(t, j, tk, "once = 5")
	_, err := rawExec(j, "UPDATE attempts SET shortened = -7")
	must(t, err)
	got := stored(t, j, tk.ID)
	if !got.Once || !got.Last.Decision.Shortened || got.Damage != nil {
		t.Errorf("got %s, %s, %v", showTask(got), showAttempt(got.Last), got.Damage)
	}
	if list := attempts(t, j, tk.Number); len(list) != 1 || !list[0].Decision.Shortened {
		t.Errorf("got %+v", list)
	}
}

// No number in a journal makes a report fail, or anything that is reckoned with it overflow.
func TestAbsurdNumbersAreReadAsLimits(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1e16, -1, 0, 3e16, math.MaxInt64} {
		t.Run(strconv.FormatInt(n, 10), func(t *testing.T) {
			j := open(t)
			ended(t, j, exhausted, 3, epoch, running("nightly", "x"))
			must(t, j.Release(waiting(t, j).Number))
			for _, set := range []string{
				"tasks SET created_at = ?1, finished_at = ?2, requeued_at = ?1, next_attempt_at = ?1, once = ?1, attempt_count = ?1",
				"tasks SET requeued_at = NULL", "attempts SET started_at = ?1, duration = ?2, delay = ?1, exit = ?1",
			} {
				values := strings.NewReplacer("?1", strconv.FormatInt(n, 10), "?2", strconv.FormatInt(^n, 10)) // ^n lies at the other end
				_, err := rawExec(j, "UPDATE "+values.Replace(set))
				must(t, err)
				checkReports(t, j)
			}
		})
	}
}

// checkReports asserts that all of a journal can be read, and that what comes of it can be added up.
func checkReports(t *testing.T, j *Journal) {
	t.Helper()
	list, err := storetest.List(j, state.Filter{})
	must(t, err)
	for _, tk := range list {
		checkTime(t, tk.CreatedAt, tk.RequeuedAt, tk.FinishedAt, tk.NextAttemptAt)
		for _, a := range attempts(t, j, tk.Number) {
			checkTime(t, a.StartedAt)
			checkSpan(t, a.Outcome.Duration)
			checkSpan(t, a.Decision.Delay)
		}
	}
	stats, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	for _, s := range stats {
		checkSpan(t, s.P95)
	}
	f, err := j.Figures(t.Context())
	must(t, err)
	checkSpan(t, f.Waiting)
	_, err = j.Prunable(t.Context(), state.Retention{})
	must(t, err)
}

func checkTime(t *testing.T, times ...time.Time) {
	t.Helper()
	for _, at := range times {
		if y := at.UTC().Year(); !at.IsZero() && (y < 1900 || y > 10000) {
			t.Errorf("a time in the year %d", y)
		}
	}
}

func checkSpan(t *testing.T, d time.Duration) {
	t.Helper()
	if d < 0 || d > 36_525*24*time.Hour {
		t.Errorf("a duration of %d ns", d)
	}
}

// SQLite's own sum is an error where it overflows: many delays that are each possible would be enough.
func TestSumsOfDelaysDoNotOverflow(t *testing.T) {
	j := open(t)
	ended(t, j, exhausted, 4, epoch, nil)
	_, err := rawExec(j, "UPDATE attempts SET delay = ?", int64(math.MaxInt64))
	must(t, err)
	checkReports(t, j)
}

func seed(n uint64) *uint64 { return &n }

// everyOption has no field at its zero value.
func everyOption() task.Options {
	return task.Options{
		Stdin: task.StdinReplay, Output: task.OutputFinal, OutputLimit: math.MaxInt64, Capture: task.CaptureBoth,
		OnStart: "echo start", OnRetry: "echo retry", OnSuccess: "echo success", OnFailure: "echo failure",
		HookTimeout: time.Minute, Seed: seed(math.MaxUint64),
		Mask: "key-[0-9]+", Exhausted: `{"targetUrl":"http://host/"}`, Ping: "http://host/{env:ID}", Signal: "SIGINT",
		Report: "/r\xff", Stdout: task.Destination{Path: "/out", Inode: math.MaxUint64},
		Source: task.Source{Path: "/a/\xff\"b\u2028", Inode: math.MaxUint64, Size: math.MaxInt64, Modified: -1, Offset: 7,
			Pipe: true, Terminal: true},
		ExhaustedPolicy: `{"name":"a"}`,
	}
}

// read returns a task as each of the queries reads it.
func read(t tester, j *Journal, tk *task.Task) map[string]*task.Task {
	t.Helper()
	ctx := context.Background()
	list, err := storetest.List(j, state.Filter{Limit: 1})
	must(t, err)
	unfinished, err := j.Unfinished(ctx)
	must(t, err)
	adopted, err := j.Adopt(ctx, tk.Number)
	must(t, err)
	return map[string]*task.Task{
		"find": stored(t, j, tk.ID), "list": list[0], "unfinished": unfinished[len(unfinished)-1], "adopt": adopted,
	}
}

func TestOptionsComeBackUnchanged(t *testing.T) {
	tests := map[string]task.Options{"none": {}, "all": everyOption(), "a seed of 0": {Seed: seed(0)}}
	all := reflect.ValueOf(everyOption())
	for i := range all.NumField() { // each alone
		if all.Field(i).IsZero() {
			t.Fatalf("%s is not tried", all.Type().Field(i).Name)
		}
		var o task.Options
		reflect.ValueOf(&o).Elem().Field(i).Set(all.Field(i))
		tests[all.Type().Field(i).Name] = o
	}
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputSuccess, task.OutputFailure} {
		tests["output "+string(mode)] = task.Options{Output: mode}
	}
	tests["shell"] = task.Options{OnRetry: "printf '%s\\n' \"$RETRY_STATUS\" <&- | tee \t\"a&b\"\nexit 1", OnFailure: "\u2028\u202e\x1b\x7f"}
	j := open(t)
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			tk := newTask()
			tk.Options = options
			must(t, claimed(j, tk, epoch))
			for query, got := range read(t, j, tk) {
				if !reflect.DeepEqual(got.Options, options) {
					t.Errorf("%s: got %+v, want %+v", query, got.Options, options)
				}
			}
		})
	}
}

// A hook may name a file in another encoding, as the command itself may.
func TestEveryHookComesBackUnchanged(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		tk := newTask()
		tk.Options = task.Options{
			OnStart: anyText().Draw(t, "on start"), HookTimeout: time.Duration(rapid.Int64Min(0).Draw(t, "hook timeout")),
			OnRetry: anyText().Draw(t, "on retry"), OnSuccess: anyText().Draw(t, "on success"), OnFailure: anyText().Draw(t, "on failure"),
		}
		must(t, claimed(j, tk, epoch))
		if got := stored(t, j, tk.ID).Options; got != tk.Options {
			t.Fatalf("got %#v\nwant %#v", got, tk.Options)
		}
	})
}

// A plain command, which most are, has none to write and to read.
func TestAPlainCommandHasNoOptions(t *testing.T) {
	j := open(t)
	inFlight(t, j)
	if n := count(t, j, "tasks WHERE options IS NULL"); n != 1 {
		t.Error("the options are not null")
	}
}

func count(t tester, j *Journal, from string) (n int) {
	t.Helper()
	must(t, j.row(context.Background(), "SELECT count(*) FROM "+from, nil, &n))
	return n
}

// A task whose options this retry cannot read is damaged: run without them it would be another task.
func TestUnreadableOptionsAreDamage(t *testing.T) {
	for _, text := range []string{"", "x", "[]", `{"seed": -1}`, `{"seed": 1.5}`, `{"output_limit": "2GiB"}`, `{"on_retry": 1}`} {
		j := open(t)
		tk := inFlight(t, j)
		_, err := rawExec(j, "UPDATE tasks SET options = ?", text)
		must(t, err)
		if damage := stored(t, j, tk.ID).Damage; damage == nil || !strings.HasPrefix(damage.Error(), "options: ") {
			t.Errorf("%q: got %v", text, damage)
		}
		if _, err := j.Adopt(t.Context(), tk.Number); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%q: adopted, %v", text, err)
		}
	}
}

// The seed decides about the phase in every process that runs the task, on whatever machine the journal lies.
func TestTheSeedsPhaseSurvivesAResume(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	tk, plain := newTask(), inFlight(t, j)
	tk.Options.Seed = seed(7)
	must(t, claimed(j, tk, epoch))
	want := tk.Options.Phase(0)
	if tk.History.Phase != want || plain.History.Phase == want {
		t.Errorf("the phases are %v with the seed and %v without, want %v", tk.History.Phase, plain.History.Phase, want)
	}
	other := openIn(t, dir)
	other.salt = j.salt + 1<<40
	for query, got := range read(t, other, tk) {
		if got.History.Phase != want {
			t.Errorf("%s: phase %v, want %v", query, got.History.Phase, want)
		}
	}
	apply(t, other, tk, recording(retryIn(0)), claiming(), recording(interrupted))
	adopted, err := other.Adopt(t.Context(), tk.Number)
	must(t, err)
	if adopted.History.Phase != want {
		t.Errorf("after two attempts: phase %v, want %v", adopted.History.Phase, want)
	}
}

// A policy that cannot be read damages its own tasks, however many others were read before.
func TestPolicyTextsOfDamagedTasks(t *testing.T) {
	j := open(t)
	good, bad := newTask(), newTask()
	bad.ID = "another"
	must(t, claimed(j, good, epoch))
	must(t, claimed(j, bad, epoch))
	_, err := rawExec(j, fmt.Sprintf("UPDATE tasks SET policy = '{' WHERE number = %d", bad.Number))
	must(t, err)
	for range 2 {
		list, err := j.Unfinished(t.Context())
		must(t, err)
		if list[0].Damage != nil || list[1].Damage == nil || list[1].Policy.Attempts != 0 {
			t.Errorf("%v, %v", list[0].Damage, list[1].Damage)
		}
	}
}
