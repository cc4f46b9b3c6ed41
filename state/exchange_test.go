package state

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// requests are tasks of HTTP: the least that one asks for, and everything that it can.
func requests() map[string]*runner.Request {
	none := ""
	return map[string]*runner.Request{
		"least": {Method: "GET", URL: "http://host/"},
		"most": {
			Method: "POST", MethodGiven: true, URL: "https://u:p@host:8/a?b=\xc3\xa9#c", Header: []string{"A: {env:B}", "C:", "D;"}, User: "n:p",
			Body: []runner.Part{
				{Text: []byte("\x00\xff\n"), Encode: true}, {File: "/dir/a b", Size: 3, Time: epoch.UTC(), Strip: true},
				{File: runner.StdinFile, Name: "f", FileName: "g", Type: "text/plain"},
			},
			Boundary: "b", Get: true, Idempotent: true, Keyed: true, KeyStyle: runner.KeySF, KeyTTL: 24 * time.Hour, MaxRetryAfter: time.Hour,
			Network: runner.Network{
				ConnectTimeout: time.Second, Proxy: "p", NoProxy: &none, UnixSocket: "/s", Resolve: []string{"a:1:b"}, Insecure: true,
				CACert: "/c", Cert: "/d", Key: "/e", HTTP1: true, Compressed: true, MaxRedirects: 50,
			},
			Output: "/o", Include: true, HideFail: true,
		},
	}
}

// sending returns a task of HTTP that no journal knows yet.
func sending(r *runner.Request) *runner.Task {
	t := newTask()
	t.Kind, t.Command, t.Request = runner.KindHTTP, nil, r
	return t
}

func TestARequestComesBackUnchanged(t *testing.T) {
	j := open(t)
	for name, request := range requests() {
		t.Run(name, func(t *testing.T) {
			for i, fields := 0, reflect.ValueOf(*request); name == "most" && i < fields.NumField(); i++ {
				if fields.Field(i).IsZero() {
					t.Errorf("%s is not tried", fields.Type().Field(i).Name)
				}
			}
			task := sending(request)
			must(t, claimed(j, task, epoch))
			must(t, recorded(j, task, refused(503), retryIn(time.Minute), epoch))
			must(t, j.Release(task.Number))
			adopted, err := j.Adopt(t.Context(), task.Number)
			must(t, err)
			for _, got := range []*runner.Task{stored(t, j, task.ID), adopted} {
				if !reflect.DeepEqual(got.Request, request) || got.Kind != runner.KindHTTP || got.Command != nil || got.Damage != nil {
					t.Errorf("got  %+v of %s\nwant %+v", got.Request, showTask(got), request)
				}
			}
		})
	}
}

// refused is what an attempt came to that was answered so.
func refused(status int) runner.Outcome {
	return runner.Outcome{Exit: 22, Message: "m", Duration: time.Second, HTTP: &runner.Exchange{
		Status: status, Written: 2, ServerDelay: 90 * time.Second, Body: "why\n", Default: runner.Eligibility{Event: "503"},
		Phases: runner.Phases{DNS: time.Millisecond, Connect: 2 * time.Microsecond, TLS: time.Minute, FirstByte: 4 * time.Hour, Total: time.Second},
	}}
}

// Of an exchange all comes back but what only the decision needed.
func TestAnExchangeComesBack(t *testing.T) {
	want := *refused(503).HTTP
	want.Body = ""
	tests := map[string]struct {
		outcome runner.Outcome
		want    *runner.Exchange
	}{
		"a command's": {exit(1), nil},
		"answered":    {refused(503), &want},
		"before the request": {
			runner.Outcome{Exit: 6, Error: runner.ErrorDNS, HTTP: &runner.Exchange{}, Duration: time.Second},
			&runner.Exchange{Phases: runner.Phases{Total: time.Second}},
		},
		"none, since its owner died": {runner.Crashed(), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			task := sending(requests()["least"])
			must(t, claimed(j, task, epoch))
			must(t, recorded(j, task, tt.outcome, retryIn(time.Minute), epoch))
			history, err := j.History(t.Context(), task.Number)
			must(t, err)
			for _, a := range append(history, attempts(t, j, task.Number)[0], stored(t, j, task.ID).Last) {
				if !reflect.DeepEqual(a.Outcome.HTTP, tt.want) {
					t.Errorf("got %+v, want %+v", a.Outcome.HTTP, tt.want)
				}
			}
		})
	}
}

// A body that conditions looked at is not kept: what is kept of a reply is what the executor captured.
func TestABodyIsKeptWhereItWasCaptured(t *testing.T) {
	j := open(t)
	for _, captured := range []string{"", "why\n"} {
		task, outcome := sending(requests()["least"]), refused(503)
		outcome.Stdout = captured
		must(t, claimed(j, task, epoch))
		must(t, recorded(j, task, outcome, failed, epoch))
		if got := attempts(t, j, task.Number)[0].Outcome; got.Stdout != captured || got.Stderr != "" || got.HTTP.Body != "" {
			t.Errorf("kept %q and %q, want %q", got.Stdout, got.Stderr, captured)
		}
	}
}

// Whoever goes on with a task knows how many attempts in a row ended in the same event, and until when its key is good.
func TestAnAdoptedTaskKnowsItsEvents(t *testing.T) {
	j := open(t)
	task := sending(&runner.Request{Method: "POST", URL: "http://host/", KeyTTL: time.Hour})
	for range 2 {
		must(t, claimed(j, task, epoch))
		must(t, recorded(j, task, refused(503), retryIn(time.Minute), epoch))
	}
	must(t, j.Release(task.Number))
	got, err := j.Adopt(t.Context(), task.Number)
	must(t, err)
	want := runner.History{}
	for range 2 {
		want = want.After(&task.Policy, refused(503), retryIn(time.Minute))
	}
	if got.History.Event != want.Event || got.History.InARow != want.InARow || want.InARow != 2 || !got.History.Expires.Equal(got.CreatedAt.Add(time.Hour)) {
		t.Errorf("got %+v, want %+v", got.History, want)
	}
}

// Numbers that no retry wrote are read as what is possible, and an exchange that cannot be read as an empty one.
func TestADamagedExchangeIsNoDamage(t *testing.T) {
	empty := runner.Exchange{Phases: runner.Phases{Total: time.Second}}
	high := empty
	high.ServerDelay = longest
	for text, want := range map[string]runner.Exchange{
		`{`: empty, `[]`: empty, `null`: empty, `{"status":"x"}`: empty, `{"status":-1,"written":-1,"dns_us":-9}`: empty,
		`{"server_delay_us":9223372036854775807}`: high,
	} {
		j := open(t)
		task := sending(requests()["least"])
		must(t, claimed(j, task, epoch))
		must(t, recorded(j, task, refused(503), retryIn(time.Minute), epoch))
		_, err := j.db.Exec("UPDATE attempts SET exchange = ?", text)
		must(t, err)
		got := stored(t, j, task.ID)
		if got.Damage != nil || !reflect.DeepEqual(*got.Last.Outcome.HTTP, want) {
			t.Errorf("%s: got %+v, %v", text, got.Last.Outcome.HTTP, got.Damage)
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
			task := sending(requests()["least"])
			must(t, claimed(j, task, epoch))
			must(t, j.Release(task.Number))
			spoil(t, j, task, set)
			if got := stored(t, j, task.ID).Damage; got == nil || !strings.HasPrefix(got.Error(), want) {
				t.Errorf("got %v, want %s", got, want)
			}
			checkReports(t, j)
			checkSetApart(t, j, task)
		})
	}
}

// A stdin that a request sends goes with the task, as one that is replayed to a command.
func TestTheStdinOfARequestGoesWithIt(t *testing.T) {
	j := open(t)
	task := sending(&runner.Request{Method: "POST", URL: "http://host/", Body: []runner.Part{{File: runner.StdinFile}}})
	must(t, claimed(j, task, epoch))
	file, err := j.KeepInput(task)
	must(t, err)
	must(t, j.CompleteInput(task, file))
	must(t, file.Close())
	kept, err := j.Input(task)
	must(t, err)
	must(t, kept.Close())
	if err := j.Requeue(t.Context(), stored(t, j, task.ID), epoch); !errors.Is(err, ErrUnfinished) {
		t.Errorf("requeued before the end: %v", err)
	}
	must(t, recorded(j, task, refused(404), failed, epoch))
	if _, err := j.Input(task); !errors.Is(err, ErrInputLost) {
		t.Errorf("after the end: %v", err)
	}
	if err := j.Requeue(t.Context(), stored(t, j, task.ID), epoch); !errors.Is(err, ErrInputDropped) {
		t.Errorf("requeued: %v", err)
	}
}
