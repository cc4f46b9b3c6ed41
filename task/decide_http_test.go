package task

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// answered is a reply with a word of the table, and what else change does to it.
func answered(event string, class Class, change func(*Reply)) Outcome {
	o := Outcome{Exit: 22, Duration: time.Second, HTTP: &Reply{Default: Eligibility{Class: class, Event: event}}}
	if change != nil {
		change(o.HTTP)
	}
	return o
}

func (o Outcome) exiting(status int) Outcome {
	o.Exit = status
	return o
}

func TestDecideHTTP(t *testing.T) {
	asks := func(delay, patience time.Duration) func(*Reply) {
		return func(x *Reply) { x.ServerDelay, x.Patience = delay, patience }
	}
	ambiguous := func(x *Reply) { x.Default.Ambiguous = true }
	atMost3 := func(x *Reply) { x.Default.AtMost = 3 }
	stop := func(o Outcome, sig os.Signal) Outcome { o.Stop, o.Signal = sig, "SIG"; return o }
	retry := func(d time.Duration) Decision { return Decision{Verdict: VerdictRetry, Delay: d} }
	failed := func(r Reason) Decision { return Decision{Verdict: VerdictFailed, Reason: r} }
	exhausted := func(r Reason) Decision { return Decision{Verdict: VerdictExhausted, Reason: r} }
	on := func(list *[]Condition, text string) { *list = conditions(t, text) }
	busy := func(change func(*Reply)) Outcome { return answered("429", ClassRetryable, change) }

	tests := []struct {
		name    string
		change  func(*Policy)
		history History
		outcome Outcome
		want    Decision
	}{
		{"retryable", nil, History{}, busy(nil), retry(10 * time.Second)},
		{"not eligible", nil, History{}, answered("404", ClassFatal, nil), failed(ReasonNotEligible)},

		{"ambiguous", nil, History{}, answered("lost", ClassFatal, ambiguous), failed(ReasonAmbiguous)},
		{"ambiguous, and no retry-on names it", func(p *Policy) { on(&p.RetryOn, "429") }, History{}, answered("lost", ClassFatal, ambiguous), failed(ReasonAmbiguous)},
		{"ambiguous, but retry-on names it", func(p *Policy) { on(&p.RetryOn, "any") }, History{}, answered("lost", ClassFatal, ambiguous), retry(10 * time.Second)},
		{"ambiguous, but stop-on names it", func(p *Policy) { on(&p.StopOn, "any") }, History{}, answered("lost", ClassFatal, ambiguous), failed(ReasonNotEligible)},
		{"a success of what is not safe, but not the one that success-on names", func(p *Policy) { on(&p.SuccessOn, "201") }, History{},
			answered("200", ClassSuccess, func(x *Reply) { ambiguous(x); x.Status = 200 }).exiting(0), failed(ReasonAmbiguous)},
		{"a success of what is safe, but not the one that success-on names", func(p *Policy) { on(&p.SuccessOn, "201") }, History{},
			answered("200", ClassSuccess, func(x *Reply) { x.Status = 200 }).exiting(0), retry(10 * time.Second)},
		{"a success of what is not safe", nil, History{}, answered("200", ClassSuccess, ambiguous).exiting(0), Decision{Verdict: VerdictSucceeded, Success: true}},
		{"ambiguous, stopped by TERM", nil, History{}, stop(answered("lost", ClassFatal, ambiguous), syscall.SIGTERM), failed(ReasonAmbiguous)},
		{"ambiguous, cancelled at the keyboard", nil, History{}, stop(answered("lost", ClassFatal, ambiguous), os.Interrupt),
			Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}},
		{"safe, stopped by TERM", nil, History{}, stop(busy(nil), syscall.SIGTERM), Decision{Verdict: VerdictInterrupted}},
		{"the owner died, ambiguous", nil, History{}, Outcome{Exit: NoExit, HTTP: &Reply{Default: Eligibility{Ambiguous: true}}}, failed(ReasonAmbiguous)},
		{"the owner died, safe", nil, History{}, Outcome{Exit: NoExit}, Decision{Verdict: VerdictInterrupted}},

		{"first of at most three", nil, History{}, answered("525", ClassRetryable, atMost3), retry(10 * time.Second)},
		{"second of at most three", nil, History{Event: "525", InARow: 1}, answered("525", ClassRetryable, atMost3), retry(10 * time.Second)},
		{"third of at most three", nil, History{Event: "525", InARow: 2}, answered("525", ClassRetryable, atMost3), failed(ReasonNotEligible)},
		{"at most three in a row", nil, History{Event: "429", InARow: 2}, answered("525", ClassRetryable, atMost3), retry(10 * time.Second)},
		{"retry-on goes before at most three", func(p *Policy) { on(&p.RetryOn, "any") }, History{Event: "525", InARow: 9},
			answered("525", ClassRetryable, atMost3), retry(10 * time.Second)},
		{"attempts go before what the server asks", nil, History{Counted: 4}, busy(asks(time.Hour, time.Minute)), exhausted(ReasonAttempts)},

		{"the server asks for less", nil, History{}, busy(asks(5*time.Second, 0)), retry(10 * time.Second)},
		{"the server asks for more, and gets a little more", nil, History{}, busy(asks(time.Minute, 0)), retry(63 * time.Second)},
		{"as long as the patience", nil, History{}, busy(asks(time.Minute, time.Minute)), retry(63 * time.Second)},
		{"longer than the patience", nil, History{}, busy(asks(time.Minute, time.Minute-1)),
			Decision{Verdict: VerdictRetry, Delay: 63 * time.Second, Reason: ReasonDeferred}},
		{"longer than the budget", func(p *Policy) { p.Budget = time.Minute }, History{}, busy(asks(time.Minute, time.Second)), exhausted(ReasonBudget)},
		{"longer than the budget leaves beside an attempt", func(p *Policy) { p.Budget = time.Minute }, History{}, busy(asks(59*time.Second, 0)),
			exhausted(ReasonBudget)},
		{"the budget leaves what the server asks for, and no more", func(p *Policy) { p.Budget = time.Minute }, History{}, busy(asks(58*time.Second, 0)),
			Decision{Verdict: VerdictRetry, Delay: 58 * time.Second, Shortened: true}},

		{"the key lasts", nil, History{Expires: epoch.Add(11 * time.Second)}, busy(nil), retry(10 * time.Second)},
		{"the key does not last", nil, History{Expires: epoch.Add(10 * time.Second)}, busy(nil), exhausted(ReasonExpired)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.history.Began = epoch
			if got := Decide(policy(t, tt.change), tt.history, tt.outcome, epoch.Add(time.Second), half); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What a resume knows of the events is what the decisions before it saw.
func TestHistoryCountsEvents(t *testing.T) {
	p, h := policy(t, nil), History{Began: epoch}
	for i, want := range []struct {
		event  string
		inARow int
	}{{"525", 1}, {"525", 2}, {"503", 1}, {"525", 1}} {
		h = h.After(p, answered(want.event, ClassRetryable, nil), Decision{Verdict: VerdictRetry})
		if h.Event != want.event || h.InARow != want.inARow {
			t.Fatalf("after %d attempts: %d of %q", i+1, h.InARow, h.Event)
		}
	}
	if crashed := h.After(p, Crashed(), Decision{Verdict: VerdictInterrupted}); crashed.Event != "525" || crashed.InARow != 1 {
		t.Errorf("an attempt without an outcome made it %d of %q", crashed.InARow, crashed.Event)
	}
}

// A server's delay moves no curve that grows from the delay before.
func TestServerDelayIsNotTheCurves(t *testing.T) {
	p := policy(t, nil)
	o := answered("429", ClassRetryable, func(x *Reply) { x.ServerDelay = time.Hour })
	h := History{Own: Progress{Step: 1, Delay: 3 * time.Second}}.After(p, o, Decision{Verdict: VerdictRetry, Delay: time.Hour})
	if want := (Progress{Step: 2, Delay: 3 * time.Second}); h.Own != want || h.Delay != time.Hour {
		t.Errorf("along the curve %+v, the wait %v", h.Own, h.Delay)
	}
}

func TestDecideResumeOfAKey(t *testing.T) {
	h := History{Began: epoch, Expires: epoch.Add(time.Hour)}
	p := policy(t, nil)
	if d := DecideResume(p, h, epoch.Add(time.Minute), epoch); d.Verdict != VerdictRetry {
		t.Errorf("in time: %+v", d)
	}
	if d := DecideResume(p, h, epoch.Add(time.Minute), epoch.Add(2*time.Hour)); d != (Decision{Verdict: VerdictExhausted, Reason: ReasonExpired}) {
		t.Errorf("too late: %+v", d)
	}
}

func TestExpiry(t *testing.T) {
	day := epoch.Add(24 * time.Hour)
	for name, tt := range map[string]struct {
		request *Request
		want    time.Time
	}{
		"a command":           {nil, time.Time{}},
		"POST":                {&Request{Method: "POST", KeyTTL: 24 * time.Hour}, day},
		"POST without a key":  {&Request{Method: "POST", KeyTTL: 24 * time.Hour, KeyStyle: KeyNone}, time.Time{}},
		"POST for ever":       {&Request{Method: "POST"}, time.Time{}},
		"GET":                 {&Request{Method: "GET", KeyTTL: 24 * time.Hour}, time.Time{}},
		"GET with a key":      {&Request{Method: "GET", Keyed: true, KeyTTL: 24 * time.Hour}, day},
		"lower case is POSTy": {&Request{Method: "get", KeyTTL: 24 * time.Hour}, day},
	} {
		tk := &Task{CreatedAt: epoch, Request: tt.request}
		if got := tk.Expiry(); !got.Equal(tt.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
