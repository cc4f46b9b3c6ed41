package task

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/testkit"
)

func BenchmarkDecide(b *testing.B) {
	listed, err := ParseConditions([]string{"1,2,75", "100-120", "timeout"})
	if err != nil {
		b.Fatal(err)
	}
	slow, err := backoff.Parse("fib:5s..10m", "full")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Policy)
		made   int
		exit   int
	}{
		{"success", func(*Policy) {}, 1, 0},
		{"failure", func(*Policy) {}, 2, 75},
		{"lists", func(p *Policy) { p.RetryOn, p.StopOn = listed, listed[:1] }, 2, 110},
		{"rule and budget", func(p *Policy) {
			p.Rules, p.Budget = []Rule{{When: listed[0], Backoff: slow}, {When: listed[2], Backoff: slow}}, time.Hour
		}, 3, 75},
		{"the last attempt", func(*Policy) {}, 5, 75},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := DefaultPolicy()
			c.change(&p)
			h := History{Began: epoch, Made: c.made, Counted: c.made - 1, Phase: 0.3}
			outcome := exit(c.exit)
			b.ReportAllocs()
			for b.Loop() {
				Decide(&p, h, outcome, epoch, half)
			}
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// half is the middle of every random interval.
func half() float64 { return 0.5 }

// policy returns the default policy with a constant delay of 10 s and what change does to it.
func policy(t *testing.T, change func(*Policy)) *Policy {
	t.Helper()
	spec, err := backoff.Parse("constant:10s", "none")
	if err != nil {
		t.Fatal(err)
	}
	p := DefaultPolicy()
	p.Backoff = spec
	if change != nil {
		change(&p)
	}
	return &p
}

func conditions(t *testing.T, texts ...string) []Condition {
	t.Helper()
	list, err := ParseConditions(texts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func exit(code int) Outcome { return Outcome{Exit: code, Duration: time.Second} }

// bystander is an attempt that was in hand for a moment when its owner died.
func bystander() Outcome {
	o := Crashed()
	o.Duration = time.Millisecond
	return o
}

func TestDecide(t *testing.T) {
	retry := Decision{Verdict: VerdictRetry, Delay: 10 * time.Second}
	exhausted := func(r Reason) Decision { return Decision{Verdict: VerdictExhausted, Reason: r} }
	failed := Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible}
	cancelled := Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
	succeeded := Decision{Verdict: VerdictSucceeded}
	budget := func(d time.Duration) func(*Policy) { return func(p *Policy) { p.Budget = d } }
	stop := func(o Outcome, sig os.Signal) Outcome { o.Stop = sig; return o }
	final := func(o Outcome) Outcome { o.Final = true; return o }
	read := func(o Outcome) Outcome { o.StdinRead = true; return o }
	lost := Decision{Verdict: VerdictFailed, Reason: ReasonStdin}

	tests := []struct {
		name    string
		change  func(*Policy)
		history History
		outcome Outcome
		elapsed time.Duration
		want    Decision
	}{
		{"success", nil, History{}, exit(0), 0, succeeded},
		{"failure", nil, History{}, exit(1), 0, retry},
		{"killed by a signal", nil, History{}, Outcome{Exit: 137, Signal: "SIGKILL"}, 0, retry},
		{"timed out", nil, History{}, Outcome{Exit: 143, Signal: "SIGTERM", Error: ErrorTimeout}, 0, retry},
		{"command not found", nil, History{}, Outcome{Exit: 127, Error: ErrorNotFound}, 0, failed},
		{"not executable", nil, History{}, Outcome{Exit: 126, Error: ErrorNotExecutable}, 0, failed},
		{"cannot start", nil, History{}, Outcome{Exit: 125, Error: ErrorStart}, 0, failed},
		{"an exit of 127 by the command itself", nil, History{}, exit(127), 0, failed},

		{"stdin read, success", nil, History{}, read(exit(0)), 0, succeeded},
		{"stdin read, failure", nil, History{}, read(exit(1)), 0, lost},
		{"stdin read, one success of two", func(p *Policy) { p.Consecutive = 2 }, History{}, read(exit(0)), 0,
			Decision{Verdict: VerdictFailed, Reason: ReasonStdin, Success: true}},
		{"stdin read, not eligible", nil, History{}, read(Outcome{Exit: 127, Error: ErrorNotFound}), 0, failed},
		{"stdin read, last attempt", nil, History{Counted: 4}, read(exit(1)), 0, exhausted(ReasonAttempts)},
		{"stdin read before it began", func(p *Policy) { p.Attempts = 1 }, History{}, read(Outcome{Exit: 1, Error: ErrorStart}), 0,
			lost},
		{"stdin read, TERM", nil, History{}, read(stop(exit(1), syscall.SIGTERM)), 0, lost},
		{"stdin read, INT", nil, History{}, read(stop(exit(1), os.Interrupt)), 0, cancelled},

		{"last but one attempt", nil, History{Counted: 3}, exit(1), 0, retry},
		{"last attempt", nil, History{Counted: 4}, exit(1), 0, exhausted(ReasonAttempts)},
		{"no limit of attempts", func(p *Policy) { p.Attempts = 0 }, History{Counted: 1e6}, exit(1), 0, retry},

		{"first crash", nil, History{}, Crashed(), 0, Decision{Verdict: VerdictInterrupted}},
		{"second crash in a row", nil, History{Crashes: 1}, Crashed(), 0, Decision{Verdict: VerdictInterrupted}},
		{"third crash in a row", nil, History{Crashes: 2}, Crashed(), 0, exhausted(ReasonCrashes)},
		{"a bystander of a crash", nil, History{Crashes: 2}, bystander(), 0, Decision{Verdict: VerdictInterrupted}},
		{"a crash uses up no attempt", nil, History{Counted: 5}, Crashed(), 0, Decision{Verdict: VerdictInterrupted}},

		{"INT", nil, History{}, stop(exit(1), os.Interrupt), 0, cancelled},
		{"QUIT", nil, History{}, stop(exit(1), syscall.SIGQUIT), 0, cancelled},
		{"TERM", nil, History{}, stop(exit(1), syscall.SIGTERM), 0, Decision{Verdict: VerdictInterrupted}},
		{"HUP", nil, History{}, stop(exit(1), syscall.SIGHUP), 0, Decision{Verdict: VerdictInterrupted}},
		{"TERM in the last attempt", nil, History{Counted: 4}, stop(exit(1), syscall.SIGTERM), 0,
			Decision{Verdict: VerdictInterrupted}},
		{"success in spite of INT", nil, History{}, stop(exit(0), os.Interrupt), 0, succeeded},

		{"final", nil, History{}, final(exit(1)), 0, failed},
		{"final, with retry-on", func(p *Policy) { p.RetryOn, _ = ParseConditions([]string{"any"}) }, History{},
			final(exit(1)), 0, failed},
		{"final success", nil, History{}, final(exit(0)), 0, succeeded},
		{"final, the first of two successes in a row", func(p *Policy) { p.Consecutive = 2 }, History{}, final(exit(0)),
			0, failed},
		{"final, in the last attempt", nil, History{Counted: 4}, final(exit(1)), 0, failed},
		{"final, budget used up", budget(time.Minute), History{}, final(exit(1)), time.Hour, failed},
		{"final, INT", nil, History{}, final(stop(exit(1), os.Interrupt)), 0, cancelled},
		{"final, TERM", nil, History{}, final(stop(exit(1), syscall.SIGTERM)), 0,
			Decision{Verdict: VerdictInterrupted}},

		{"first of two successes in a row", func(p *Policy) { p.Consecutive = 2 }, History{}, exit(0), 0, retry},
		{"second of two", func(p *Policy) { p.Consecutive = 2 }, History{Successes: 1}, exit(0), 0, succeeded},
		{"not enough successes in the last attempt", func(p *Policy) { p.Consecutive = 2 }, History{Counted: 4},
			exit(0), 0, exhausted(ReasonAttempts)},

		{"budget with room", budget(time.Hour), History{}, exit(1), time.Minute, retry},
		{"budget that leaves twice the estimate", budget(13 * time.Second), History{}, exit(1), time.Second, retry},
		{"budget that leaves less than that", budget(12 * time.Second), History{}, exit(1), time.Second,
			Decision{Verdict: VerdictRetry, Delay: 9 * time.Second, Shortened: true}},
		{"a quick last attempt has a tenth of the budget", budget(8 * time.Second), History{}, Outcome{Exit: 1}, 0,
			Decision{Verdict: VerdictRetry, Delay: 7200 * time.Millisecond, Shortened: true}},
		{"a quick last attempt has a second", budget(time.Minute), History{}, Outcome{Exit: 1}, 55 * time.Second,
			Decision{Verdict: VerdictRetry, Delay: 4 * time.Second, Shortened: true}},
		{"a quick last attempt has what is left", budget(time.Minute), History{}, Outcome{Exit: 1}, 59500 * time.Millisecond,
			Decision{Verdict: VerdictRetry, Delay: 0, Shortened: true}},
		{"budget too short for the delay", budget(11 * time.Second), History{}, exit(1), time.Second,
			Decision{Verdict: VerdictRetry, Delay: 8 * time.Second, Shortened: true}},
		{"budget that leaves one estimate", budget(2 * time.Second), History{}, exit(1), time.Second,
			Decision{Verdict: VerdictRetry, Delay: 0, Shortened: true}},
		{"budget that leaves less than the estimate", budget(2 * time.Second),
			History{Longest: 1500 * time.Millisecond}, exit(1), time.Second,
			exhausted(ReasonBudget)},
		{"budget used up", budget(time.Minute), History{}, Outcome{Exit: 143, Error: ErrorTimeout}, time.Minute,
			exhausted(ReasonBudget)},
		{"after the last attempt of a budget", budget(time.Hour), History{Final: true}, exit(1), time.Second,
			exhausted(ReasonBudget)},
		{"attempts go before the budget", budget(time.Second), History{Counted: 4}, exit(1), time.Minute,
			exhausted(ReasonAttempts)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.history.Began = epoch
			tt.want.Success = tt.outcome.Exit == 0
			got := Decide(policy(t, tt.change), tt.history, tt.outcome, epoch.Add(tt.elapsed), half)
			got.Why = "" // see TestDecideSaysWhy
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestDecideUsesTheStepOfTheBackoff(t *testing.T) {
	p := policy(t, func(p *Policy) {
		p.Backoff, _ = backoff.Parse("exp:1s", "none")
		p.Attempts, p.ResetAfter = 0, time.Minute
	})
	h := History{Began: epoch}
	long := exit(1)
	long.Duration = time.Minute
	steps := []struct {
		outcome Outcome
		want    time.Duration
	}{
		{exit(1), time.Second}, {exit(1), 2 * time.Second}, {exit(1), 4 * time.Second},
		{long, time.Second}, {exit(1), 2 * time.Second},
		{Crashed(), 0}, {exit(1), 4 * time.Second}, // a crash leaves the backoff where it was
	}
	for i, s := range steps {
		d := Decide(p, h, s.outcome, epoch, half)
		if d.Delay != s.want {
			t.Errorf("step %d: got delay %v, want %v", i, d.Delay, s.want)
		}
		h = h.After(p, s.outcome, d)
	}
}

// Decorrelated jitter grows from the delay before the last retry.
func TestDecidePassesThePreviousDelay(t *testing.T) {
	p := policy(t, func(p *Policy) { p.Backoff, _ = backoff.Parse("exp:1s", "decorrelated") })
	h := History{Began: epoch, Counted: 1, Own: Progress{1, 10 * time.Second}}
	almostOne := func() float64 { return 1 - 1e-12 }
	if d := Decide(p, h, exit(1), epoch, almostOne); d.Delay < 29*time.Second || d.Delay > 30*time.Second {
		t.Errorf("got delay %v, want just under 30s", d.Delay)
	}
}

func TestHistoryAfter(t *testing.T) {
	p := policy(t, func(p *Policy) { p.Consecutive = 3 })
	retry := Decision{Verdict: VerdictRetry, Delay: 7 * time.Second, Shortened: true}
	success := retry
	success.Success = true
	ruled := Decision{Verdict: VerdictRetry, Delay: 3 * time.Second, Rule: 2}
	interrupted := Decision{Verdict: VerdictInterrupted}
	before := History{Made: 3, Counted: 2, Delay: time.Second, Own: Progress{2, time.Second}, Rule: 2,
		Ruled: Progress{4, time.Second}, Successes: 1, Crashes: 1, Longest: time.Minute}
	after := func(change func(*History)) History {
		h := before
		h.Made, h.Crashes = 4, 0
		change(&h)
		return h
	}
	tests := []struct {
		name     string
		outcome  Outcome
		decision Decision
		want     History
	}{
		{"failure", exit(1), retry, after(func(h *History) {
			h.Counted, h.Delay, h.Own, h.Rule, h.Successes, h.Final = 3, 7*time.Second, Progress{3, 7 * time.Second}, 0,
				0, true
		})},
		{"failure under the same rule", exit(1), ruled, after(func(h *History) {
			h.Counted, h.Delay, h.Ruled, h.Successes = 3, 3*time.Second, Progress{5, 3 * time.Second}, 0
		})},
		{"success", exit(0), success, after(func(h *History) {
			h.Counted, h.Delay, h.Own, h.Rule, h.Ruled = 3, 7*time.Second, Progress{1, 7 * time.Second}, 0, Progress{}
			h.Successes, h.Final = 2, true
		})},
		{"crash", Crashed(), interrupted, after(func(h *History) { h.Interrupted, h.Crashes = 1, 2 })},
		{"bystander", bystander(), interrupted, after(func(h *History) { h.Interrupted, h.Crashes = 1, 1 })},
		{"interrupted by TERM", Outcome{Exit: 143, Duration: time.Hour}, interrupted,
			after(func(h *History) { h.Interrupted, h.Longest = 1, time.Hour })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := before.After(p, tt.outcome, tt.decision); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A budget counts by the clock that has gone further: the monotonic one stops while the machine sleeps, and the wall
// clock may be set back. A deadline is a time of the wall clock.
func TestWhichClockEndsABudget(t *testing.T) {
	const hour, second = time.Hour, time.Second
	limited := func(p *Policy) { p.Budget = hour }
	deadline := func(p *Policy) { p.Budget, p.Deadline = hour, true }
	tests := []struct {
		name    string
		change  func(*Policy)
		elapsed time.Duration // by the monotonic clock
		set     time.Duration // how far the wall clock was set on meanwhile
		want    time.Duration // what is left
	}{
		{"budget", limited, second, 0, hour - second},
		{"budget, clock set on", limited, second, hour, -second},
		{"budget, clock set back", limited, second, -hour, hour - second},
		{"deadline", deadline, second, 0, hour - second},
		{"deadline, clock set on", deadline, second, hour, -second},
		{"deadline, clock set back", deadline, second, -hour, 2*hour - second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, began := policy(t, tt.change), time.Now()
			now := testkit.SetWallClock(began.Add(tt.elapsed), tt.set)
			if got := p.Left(began, now); got != tt.want {
				t.Errorf("got %v left, want %v", got, tt.want)
			}
			want := VerdictRetry
			if tt.want < 0 {
				want = VerdictExhausted
			}
			if got := Decide(p, History{Began: began}, exit(1), now, half); got.Verdict != want {
				t.Errorf("got %+v, want %s", got, want)
			}
			if got := DecideResume(p, History{Began: began}, now, now); got.Verdict != want {
				t.Errorf("resume: got %+v, want %s", got, want)
			}
		})
	}
	began := time.Now()
	h := History{Began: began, Expires: began.Add(hour)} // a server forgets keys while this machine sleeps
	if got := Decide(policy(t, nil), h, exit(1), testkit.SetWallClock(began, hour), half); got.Reason != ReasonExpired {
		t.Errorf("an idempotency key after a sleep: got %+v, want %s", got, ReasonExpired)
	}
}

// A resumed task's budget goes by both clocks, too.
func TestCatchUpWithClockTakesTheMonotonicClock(t *testing.T) {
	now := time.Now()
	tk := Task{Policy: *policy(t, func(p *Policy) { p.Budget = time.Hour })}
	tk.History.Began = now.Add(-time.Minute).Round(0) // as the journal has it
	tk.CatchUpWithClock(now)
	later := testkit.SetWallClock(now.Add(time.Minute), -time.Hour)
	if got := tk.Policy.Left(tk.History.Began, later); got != 58*time.Minute {
		t.Errorf("got %v left after the clock was set back, want 58m", got)
	}
	tk.Policy.Deadline, tk.History.Began = true, now.Add(time.Minute).Round(0)
	tk.CatchUpWithClock(now)
	if got := tk.Policy.Left(tk.History.Began, now); got != 61*time.Minute {
		t.Errorf("got %v left until a deadline, want 61m", got)
	}
}

func TestDecideResume(t *testing.T) {
	budget := policy(t, func(p *Policy) { p.Budget = time.Minute })
	tests := []struct {
		name      string
		policy    *Policy
		history   History
		next, now time.Duration // since the task's creation
		want      Verdict
	}{
		{"no budget", policy(t, nil), History{}, time.Hour, 2 * time.Hour, VerdictRetry},
		{"time left", budget, History{Longest: time.Second}, 10 * time.Second, 30 * time.Second, VerdictRetry},
		{"budget gone meanwhile", budget, History{}, 10 * time.Second, 2 * time.Minute, VerdictExhausted},
		{"too little left for the estimate", budget, History{Longest: time.Minute}, 10 * time.Second, 30 * time.Second,
			VerdictExhausted},
		{"the last attempt is not checked again", budget, History{Longest: time.Minute, Final: true}, 10 * time.Second,
			30 * time.Second, VerdictRetry},
		{"it would begin after the end", budget, History{}, 2 * time.Minute, 30 * time.Second, VerdictExhausted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.history.Began = epoch
			got := DecideResume(tt.policy, tt.history, epoch.Add(tt.next), epoch.Add(tt.now))
			if got.Verdict != tt.want {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

// answered is a reply with an event of the table; change may edit it.
func answered(event string, class Class, change func(*Reply)) Outcome {
	o := Outcome{Exit: 22, Duration: time.Second, Reply: &Reply{Default: Eligibility{Class: class, Event: event}}}
	if change != nil {
		change(o.Reply)
	}
	return o
}

func (o Outcome) exiting(status int) Outcome {
	o.Exit = status
	return o
}

func TestDecideSaysWhy(t *testing.T) {
	notFound := Outcome{Error: ErrorNotFound}
	tests := []struct {
		name            string
		retryOn, stopOn []string
		outcome         Outcome
		want            string
	}{
		{name: "a list", stopOn: []string{"1", "2,64"}, outcome: exit(64), want: "is in --stop-on 2,64"},
		{name: "not in a list", retryOn: []string{"75"}, outcome: exit(1), want: "is not in --retry-on 75"},
		{name: "in none of two", retryOn: []string{"75", "76"}, outcome: exit(1), want: "matches none of the 2 --retry-on"},
		{name: "not found", outcome: notFound, want: "is final unless --retry-on 127 names it"},
		{name: "a retry", stopOn: []string{"2"}, outcome: exit(1)},
		{name: "final", outcome: Outcome{Exit: 1, Final: true},
			want: "came with output that is passed on already, or that nobody reads"},
		{name: "a reply", outcome: Outcome{Exit: 22, Reply: &Reply{Status: 404, Default: Eligibility{Class: ClassFatal}}},
			want: "is final unless --retry-on 404 names it"},
		{name: "an alert of TLS", outcome: Outcome{Exit: 35, Error: ErrorTLS,
			Reply: &Reply{Default: Eligibility{Class: ClassFatal}}}, want: "is final unless --retry-on tls names it"},
		{name: "redirects", outcome: Outcome{Exit: 47, Error: ErrorRedirects,
			Reply: &Reply{Default: Eligibility{Class: ClassFatal}}}, want: "is final"},
	}
	for _, tt := range tests {
		p := DefaultPolicy()
		p.RetryOn, p.StopOn = conditions(t, tt.retryOn...), conditions(t, tt.stopOn...)
		if got := Decide(&p, History{Began: epoch}, tt.outcome, epoch, half).Why; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDecideHTTP(t *testing.T) {
	asks := func(delay, most time.Duration) func(*Reply) {
		return func(x *Reply) { x.ServerDelay, x.MaxDelay = delay, most }
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
		{"ambiguous, and no retry-on names it", func(p *Policy) { on(&p.RetryOn, "429") }, History{},
			answered("lost", ClassFatal, ambiguous), failed(ReasonAmbiguous)},
		{"ambiguous, but retry-on names it", func(p *Policy) { on(&p.RetryOn, "any") }, History{},
			answered("lost", ClassFatal, ambiguous), retry(10 * time.Second)},
		{"ambiguous, but stop-on names it", func(p *Policy) { on(&p.StopOn, "any") }, History{},
			answered("lost", ClassFatal, ambiguous), failed(ReasonNotEligible)},
		{"a success of what is not safe, but not the one that success-on names",
			func(p *Policy) { on(&p.SuccessOn, "201") }, History{},
			answered("200", ClassSuccess, func(x *Reply) { ambiguous(x); x.Status = 200 }).exiting(0),
			failed(ReasonAmbiguous)},
		{"a success of what is safe, but not the one that success-on names",
			func(p *Policy) { on(&p.SuccessOn, "201") }, History{},
			answered("200", ClassSuccess, func(x *Reply) { x.Status = 200 }).exiting(0), retry(10 * time.Second)},
		{"a success of what is not safe", nil, History{}, answered("200", ClassSuccess, ambiguous).exiting(0),
			Decision{Verdict: VerdictSucceeded, Success: true}},
		{"ambiguous, stopped by TERM", nil, History{}, stop(answered("lost", ClassFatal, ambiguous), syscall.SIGTERM),
			failed(ReasonAmbiguous)},
		{"ambiguous, cancelled at the keyboard", nil, History{},
			stop(answered("lost", ClassFatal, ambiguous), os.Interrupt),
			Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}},
		{"safe, stopped by TERM", nil, History{}, stop(busy(nil), syscall.SIGTERM),
			Decision{Verdict: VerdictInterrupted}},
		{"the owner died, ambiguous", nil, History{},
			Outcome{Exit: NoExit, Reply: &Reply{Default: Eligibility{Ambiguous: true}}}, failed(ReasonAmbiguous)},
		{"the owner died, safe", nil, History{}, Outcome{Exit: NoExit}, Decision{Verdict: VerdictInterrupted}},

		{"first of at most three", nil, History{}, answered("525", ClassRetryable, atMost3), retry(10 * time.Second)},
		{"second of at most three", nil, History{Event: "525", InARow: 1}, answered("525", ClassRetryable, atMost3),
			retry(10 * time.Second)},
		{"third of at most three", nil, History{Event: "525", InARow: 2}, answered("525", ClassRetryable, atMost3),
			failed(ReasonNotEligible)},
		{"at most three in a row", nil, History{Event: "429", InARow: 2}, answered("525", ClassRetryable, atMost3),
			retry(10 * time.Second)},
		{"retry-on goes before at most three", func(p *Policy) { on(&p.RetryOn, "any") },
			History{Event: "525", InARow: 9},
			answered("525", ClassRetryable, atMost3), retry(10 * time.Second)},
		{"attempts go before what the server asks", nil, History{Counted: 4}, busy(asks(time.Hour, time.Minute)),
			exhausted(ReasonAttempts)},

		{"the server asks for less", nil, History{}, busy(asks(5*time.Second, 0)), retry(10 * time.Second)},
		{"the server asks for more, and gets a little more", nil, History{}, busy(asks(time.Minute, 0)),
			retry(63 * time.Second)},
		{"as long as is waited for", nil, History{}, busy(asks(time.Minute, time.Minute)), retry(63 * time.Second)},
		{"longer than is waited for", nil, History{}, busy(asks(time.Minute, time.Minute-1)),
			Decision{Verdict: VerdictRetry, Delay: 63 * time.Second, Reason: ReasonDeferred}},
		{"longer than the budget", func(p *Policy) { p.Budget = time.Minute }, History{},
			busy(asks(time.Minute, time.Second)), exhausted(ReasonBudget)},
		{"longer than the budget leaves beside an attempt", func(p *Policy) { p.Budget = time.Minute }, History{},
			busy(asks(59*time.Second, 0)),
			exhausted(ReasonBudget)},
		{"the budget leaves what the server asks for, and no more", func(p *Policy) { p.Budget = time.Minute },
			History{}, busy(asks(58*time.Second, 0)),
			Decision{Verdict: VerdictRetry, Delay: 58 * time.Second, Shortened: true}},

		{"the key lasts", nil, History{Expires: epoch.Add(11 * time.Second)}, busy(nil), retry(10 * time.Second)},
		{"the key does not last", nil, History{Expires: epoch.Add(10 * time.Second)}, busy(nil),
			exhausted(ReasonExpired)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.history.Began = epoch
			got := Decide(policy(t, tt.change), tt.history, tt.outcome, epoch.Add(time.Second), half)
			got.Why = "" // see TestDecideSaysWhy
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A history counts events in a row, so that a resume knows them.
func TestHistoryCountsEvents(t *testing.T) {
	p, h := policy(t, nil), History{Began: epoch}
	for i, want := range []struct {
		event  string
		inARow int
	}{{"525", 1}, {"525", 2}, {"503", 1}, {"525", 1}} {
		h = h.After(p, answered(want.event, ClassRetryable, nil), Decision{Verdict: VerdictRetry})
		if h.Event != want.event || h.InARow != want.inARow {
			t.Fatalf("after %d attempts: got %d of %q, want %d of %q", i+1, h.InARow, h.Event, want.inARow, want.event)
		}
	}
	if crashed := h.After(p, Crashed(), Decision{Verdict: VerdictInterrupted}); crashed.Event != "525" ||
		crashed.InARow != 1 {
		t.Errorf("after a crash: got %d of %q, want 1 of 525", crashed.InARow, crashed.Event)
	}
}

// The delay of a server does not change a curve that grows from the previous delay.
func TestServerDelayIsNotTheCurves(t *testing.T) {
	p := policy(t, nil)
	o := answered("429", ClassRetryable, func(x *Reply) { x.ServerDelay = time.Hour })
	h := History{Own: Progress{Step: 1, Delay: 3 * time.Second}}.After(p, o,
		Decision{Verdict: VerdictRetry, Delay: time.Hour})
	if want := (Progress{Step: 2, Delay: 3 * time.Second}); h.Own != want || h.Delay != time.Hour {
		t.Errorf("got %+v on the curve, delay %v, want %+v, 1h", h.Own, h.Delay, want)
	}
}

func TestDecideResumeOfAKey(t *testing.T) {
	h := History{Began: epoch, Expires: epoch.Add(time.Hour)}
	p := policy(t, nil)
	if d := DecideResume(p, h, epoch.Add(time.Minute), epoch); d.Verdict != VerdictRetry {
		t.Errorf("in time: got %+v, want a retry", d)
	}
	want := Decision{Verdict: VerdictExhausted, Reason: ReasonExpired}
	if d := DecideResume(p, h, epoch.Add(time.Minute), epoch.Add(2*time.Hour)); d != want {
		t.Errorf("too late: got %+v, want %+v", d, want)
	}
}

// target is a Target of an unknown kind.
type target struct {
	Target
	safe     bool
	lifetime time.Duration
}

func (t target) Safe() bool                 { return t.safe }
func (t target) KeyLifetime() time.Duration { return t.lifetime }

func TestExpiry(t *testing.T) {
	day := epoch.Add(24 * time.Hour)
	for name, tt := range map[string]struct {
		target Target
		want   time.Time
	}{
		"a command":                {target: nil},
		"a key that never expires": {target: target{}},
		"a key":                    {target: target{lifetime: 24 * time.Hour}, want: day},
	} {
		tk := &Task{CreatedAt: epoch, Target: tt.target}
		if got := tk.Expiry(); !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestDecodeTarget(t *testing.T) {
	const want = `unknown kind of task "carrier pigeon"`
	if _, err := DecodeTarget("carrier pigeon", nil); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func drawPolicy(t *rapid.T) *Policy {
	curve := rapid.SampledFrom([]string{"constant:3s", "exp:1s..20s", "linear:2s", "fib:1s", "list:1s,9s,0s",
		"poly:1s+n^2", "buckets:2", "sidekiq"}).Draw(t, "curve")
	jitter := ""
	if curve != "buckets:2" && curve != "sidekiq" {
		jitter = rapid.SampledFrom([]string{"none", "full", "equal", "phase", "30%", "decorrelated", "add:2s"}).Draw(t,
			"jitter")
	}
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	p := DefaultPolicy()
	p.Backoff = spec
	p.Attempts = rapid.IntRange(0, 12).Draw(t, "attempts")
	p.Consecutive = rapid.IntRange(1, 3).Draw(t, "consecutive")
	p.Budget = time.Duration(rapid.IntRange(0, 120).Draw(t, "budget")) * time.Second
	p.ResetAfter = time.Duration(rapid.IntRange(0, 5).Draw(t, "reset")) * time.Second
	return &p
}

// For any outcomes no delay is negative or longer than the budget, the attempts are limited, and the task ends.
func TestDecideKeepsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		now := epoch
		h := History{Began: now, Phase: dice.Float64()}
		counted := 0
		for range 40 {
			o := Outcome{
				Exit:     rapid.SampledFrom([]int{0, 1, 1, 1, NoExit}).Draw(t, "exit"),
				Duration: time.Duration(rapid.IntRange(1, 8000).Draw(t, "ms")) * time.Millisecond,
			}
			now = now.Add(o.Duration)
			d := Decide(p, h, o, now, dice.Float64)
			if !o.IsCrash() {
				counted++
			}
			h = h.After(p, o, d)
			if p.Attempts > 0 && counted > p.Attempts {
				t.Fatalf("got %d attempts, want at most %d", counted, p.Attempts)
			}
			if d.Verdict != VerdictRetry {
				if d.Verdict.Status().Finished() {
					return
				}
				continue
			}
			if d.Delay < 0 {
				t.Fatalf("got delay %v, want at least 0", d.Delay)
			}
			now = now.Add(d.Delay)
			if p.Budget > 0 && now.Sub(epoch) > p.Budget {
				t.Fatalf("got a wait until %v, want at most the budget %v", now.Sub(epoch), p.Budget)
			}
		}
	})
}

// At most one delay is shortened: the attempt after it is the last.
func TestDecideShortensOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.Budget, p.Attempts, p.Consecutive = time.Minute, 0, 1
		now, h, shortened := epoch, History{Began: epoch}, 0
		for {
			o := Outcome{Exit: 1, Duration: time.Duration(rapid.IntRange(1, 9000).Draw(t, "ms")) * time.Millisecond}
			now = now.Add(o.Duration)
			d := Decide(p, h, o, now, half)
			h = h.After(p, o, d)
			if shortened > 0 && d.Verdict == VerdictRetry {
				t.Fatalf("after a shortened delay: got %+v, want no retry", d)
			}
			if d.Verdict != VerdictRetry {
				return
			}
			if d.Shortened {
				shortened++
			}
			now = now.Add(d.Delay)
		}
	})
}
