package task

import (
	"strings"
	"testing"
)

func reply(status int) Outcome {
	o := Outcome{Reply: &Reply{Status: status}}
	if status >= 400 {
		o.Exit = 22
		o.Reply.Default.Class = ClassFatal
	}
	return o
}

func fault(class ErrorClass, exit int) Outcome {
	return Outcome{Exit: exit, Error: class, Reply: &Reply{Default: Eligibility{Class: ClassRetryable}}}
}

func TestConditionsOfHTTP(t *testing.T) {
	cut := fault(ErrorTruncated, 18)
	cut.Reply.Status = 200
	lasting := Outcome{Exit: 60, Error: ErrorTLS, Reply: &Reply{Default: Eligibility{Class: ClassFatal}}}
	tests := []struct {
		condition string
		outcome   Outcome
		want      bool
	}{
		{"429", reply(429), true}, {"429", reply(428), false},
		{"5xx", reply(500), true}, {"5xx", reply(599), true}, {"5xx", reply(499), false}, {"5xx", reply(600), false},
		{"520-524", reply(522), true}, {"520-524", reply(525), false},
		{"22", reply(500), false}, // a status, not curl's exit code
		{"200", cut, false}, {"truncated", cut, true}, {"any", cut, true},
		{"dns", fault(ErrorDNS, 6), true}, {"connect", fault(ErrorConnect, 7), true},
		{"tls", fault(ErrorTLS, 35), true},
		{"reset", fault(ErrorReset, 56), true}, {"timeout", fault(ErrorTimeout, 28), true},
		{"dns", fault(ErrorConnect, 7), false},
		{"any", reply(404), true}, {"any", reply(200), false}, {"any", fault(ErrorURL, 3), false},
		{"faults", fault(ErrorDNS, 6), true}, {"faults", lasting, false}, {"faults", reply(503), false},
		{"faults", exit(5), false},
		{"429,dns,5xx", fault(ErrorDNS, 6), true},
		{"dns,reset,5xx", exit(5), false}, {"5xx", exit(500), true},
	}
	for _, tt := range tests {
		if got, err := conditions(t, tt.condition)[0].Match(Evidence{Outcome: tt.outcome}); got != tt.want ||
			err != nil {
			t.Errorf("%s of %+v: got %v, error %v, want %v", tt.condition, tt.outcome, got, err, tt.want)
		}
	}
}

func TestClassifyHTTP(t *testing.T) {
	on := func(list string) func(*Policy) { return func(p *Policy) { p.RetryOn = conditions(t, list) } }
	tests := []struct {
		name    string
		change  func(*Policy)
		outcome Outcome
		want    Class
	}{
		{"success", nil, reply(200), ClassSuccess},
		{"the default", nil, reply(500), ClassFatal},
		{"the default of a fault", nil, fault(ErrorReset, 56), ClassRetryable},
		{"retry-on goes before the table", on("500"), reply(500), ClassRetryable},
		{"retry-on replaces the table", on("500"), fault(ErrorReset, 56), ClassFatal},
		{"retry-on leaves success alone", on("500"), reply(200), ClassSuccess},
		{"stop-on goes before the table", func(p *Policy) { p.StopOn = conditions(t, "reset") }, fault(ErrorReset, 56),
			ClassFatal},
		{"success-on", func(p *Policy) { p.SuccessOn = conditions(t, "404") }, reply(404), ClassSuccess},
		{"not the success that is waited for", func(p *Policy) { p.SuccessOn = conditions(t, "201") }, reply(200),
			ClassRetryable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := policy(t, tt.change).Classify(Evidence{Outcome: tt.outcome}); got.Class != tt.want ||
				err != nil {
				t.Errorf("got class %d, error %v, want %d", got.Class, err, tt.want)
			}
		})
	}
}

// The exit codes of an HTTP request are those of curl, also after a timeout.
func TestExitCodeOfHTTP(t *testing.T) {
	for _, o := range []Outcome{fault(ErrorTimeout, 28), fault(ErrorDNS, 6), reply(404)} {
		if got := o.ExitCode(); got != o.Exit {
			t.Errorf("%+v: got exit %d, want %d", o, got, o.Exit)
		}
	}
}

// A request that was interrupted, and is not safe to repeat, ends without a reply.
func TestExitCodeOfARequestThatWasKilled(t *testing.T) {
	tk := &Task{Target: target{}}
	if got := tk.Crashed().ExitCode(); got != 56 {
		t.Errorf("got exit %d, want 56", got)
	}
}

func TestEndsByCrash(t *testing.T) {
	for name, tt := range map[string]struct {
		task Task
		want bool
	}{
		"an unsafe request":        {Task{Status: InFlight, Target: target{}}, true},
		"a safe one":               {Task{Status: InFlight, Target: target{safe: true}}, false},
		"a command":                {Task{Status: InFlight}, false},
		"the third crash in a row": {Task{Status: InFlight, History: History{Crashes: 2}}, true},
		"a wait":                   {Task{Status: Pending, Target: target{}}, false},
	} {
		if got := tt.task.EndsByCrash(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestTrimTailsOfReply(t *testing.T) {
	o := Outcome{Reply: &Reply{Status: 200, Body: strings.Repeat("a", ConditionTail-1) + "z"}}
	brief := o.TrimTails()
	if len(brief.Reply.Body) != StoredTail || !strings.HasSuffix(brief.Reply.Body, "az") || brief.Reply.Status != 200 {
		t.Errorf("got %d bytes of the body, want %d", len(brief.Reply.Body), StoredTail)
	}
	if len(o.Reply.Body) != ConditionTail {
		t.Errorf("the original: got %d bytes of the body, want %d", len(o.Reply.Body), ConditionTail)
	}
}

// A status of gRPC is named or numbered; a client makes up one for what it could not send.
func TestConditionsOfGRPC(t *testing.T) {
	answer := func(status int) Outcome {
		o := Outcome{Reply: &Reply{Status: status, StatusName: StatusNames()[status]}}
		if status != 0 {
			o.Exit = 64 + status
		}
		return o
	}
	unsent, lost := answer(14), fault(ErrorReset, 78)
	unsent.Error = ErrorConnect
	for _, tt := range []struct {
		condition string
		outcome   Outcome
		want      bool
	}{
		{"UNAVAILABLE", answer(14), true}, {"UNAVAILABLE", answer(13), false}, {"14", answer(14), true}, {"14", exit(14), true},
		{"UNAVAILABLE", unsent, true}, {"14", unsent, true}, {"connect", unsent, true}, {"UNAVAILABLE", lost, false},
		{"reset", lost, true}, {"0", answer(0), true}, {"0", lost, false}, {"any", answer(5), true}, {"any", answer(0), false},
		{"RESOURCE_EXHAUSTED,ABORTED", answer(10), true}, {"8-10", answer(9), true}, {"UNAVAILABLE", exit(14), false},
	} {
		c, err := ParseCondition(tt.condition)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Match(Evidence{Outcome: tt.outcome}); got != tt.want || err != nil {
			t.Errorf("%s: got %v, %v of %+v, want %v", tt.condition, got, err, tt.outcome.Reply, tt.want)
		}
	}
	for _, tt := range []struct {
		outcome          Outcome
		status, answered bool
	}{
		{answer(0), true, true}, {answer(14), true, true}, {lost, false, false}, {unsent, true, false},
		{reply(200), true, true}, {fault(ErrorDNS, 6), false, false},
	} {
		if tt.outcome.Reply.HasStatus() != tt.status || tt.outcome.Answered() != tt.answered {
			t.Errorf("%+v: got a status %v, answered %v, want %v, %v", tt.outcome.Reply, tt.outcome.Reply.HasStatus(),
				tt.outcome.Answered(), tt.status, tt.answered)
		}
	}
}
