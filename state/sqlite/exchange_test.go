package sqlite

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// requests are tasks of HTTP: the least that one asks for, and everything that it can.
func requests() map[string]*request.Request {
	none := ""
	return map[string]*request.Request{
		"least": {Method: "GET", URL: "http://host/"},
		"most": {
			Method: "POST", MethodGiven: true, URL: "https://u:p@host:8/a?b=\xc3\xa9#c", Header: []string{"A: {env:B}", "C:", "D;"}, User: "n:p",
			Body: []request.Part{
				{Text: []byte("\x00\xff\n"), Encode: true}, {File: "/dir/a b", Size: 3, Time: epoch.UTC(), Strip: true},
				{File: request.StdinFile, Name: "f", FileName: "g", Type: "text/plain"},
			},
			Boundary: "b", Get: true, Idempotent: true, Keyed: true, KeyStyle: request.KeySF, KeyTTL: 24 * time.Hour, MaxRetryAfter: time.Hour,
			Network: request.Network{
				ConnectTimeout: time.Second, Proxy: "p", NoProxy: &none, UnixSocket: "/s", Resolve: []string{"a:1:b"}, Insecure: true,
				CACert: "/c", Cert: "/d", Key: "/e", HTTP1: true, Compressed: true, MaxRedirects: 50,
			},
			Output: "/o", Include: true, HideFail: true,
		},
	}
}

// sending returns a task of HTTP that no journal knows yet.
func sending(r *request.Request) *task.Task {
	t := newTask()
	t.Kind, t.Command, t.Target = request.Kind, nil, r
	return t
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
	high.ServerDelay = longest
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
		"request = '{}'":                            "request: it names no method or no URL",
		`request = '{"method":"GET"}'`:              "request: it names no method or no URL",
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
