package task

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
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

func TestDecide(t *testing.T) {
	retry := Decision{Verdict: VerdictRetry, Delay: 10 * time.Second}
	exhausted := func(r Reason) Decision { return Decision{Verdict: VerdictExhausted, Reason: r} }
	failed := Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible}
	cancelled := Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
	succeeded := Decision{Verdict: VerdictSucceeded}
	budget := func(d time.Duration) func(*Policy) { return func(p *Policy) { p.Budget = d } }
	stop := func(o Outcome, sig os.Signal) Outcome { o.Stop = sig; return o }
	final := func(o Outcome) Outcome { o.Final = true; return o }

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
		{"an exit of 127 by the command itself", nil, History{}, exit(127), 0, retry},

		{"last but one attempt", nil, History{Counted: 3}, exit(1), 0, retry},
		{"last attempt", nil, History{Counted: 4}, exit(1), 0, exhausted(ReasonAttempts)},
		{"no limit of attempts", func(p *Policy) { p.Attempts = 0 }, History{Counted: 1e6}, exit(1), 0, retry},

		{"first crash", nil, History{}, Crashed(), 0, Decision{Verdict: VerdictInterrupted}},
		{"second crash in a row", nil, History{Crashes: 1}, Crashed(), 0, Decision{Verdict: VerdictInterrupted}},
		{"third crash in a row", nil, History{Crashes: 2}, Crashed(), 0, exhausted(ReasonCrashes)},
		{"a crash uses up no attempt", nil, History{Counted: 5}, Crashed(), 0, Decision{Verdict: VerdictInterrupted}},

		{"INT", nil, History{}, stop(exit(1), os.Interrupt), 0, cancelled},
		{"QUIT", nil, History{}, stop(exit(1), syscall.SIGQUIT), 0, cancelled},
		{"TERM", nil, History{}, stop(exit(1), syscall.SIGTERM), 0, Decision{Verdict: VerdictInterrupted}},
		{"HUP", nil, History{}, stop(exit(1), syscall.SIGHUP), 0, Decision{Verdict: VerdictInterrupted}},
		{"TERM in the last attempt", nil, History{Counted: 4}, stop(exit(1), syscall.SIGTERM), 0, Decision{Verdict: VerdictInterrupted}},
		{"success in spite of INT", nil, History{}, stop(exit(0), os.Interrupt), 0, succeeded},

		{"final", nil, History{}, final(exit(1)), 0, failed},
		{"final, with retry-on", func(p *Policy) { p.RetryOn, _ = ParseConditions([]string{"any"}) }, History{}, final(exit(1)), 0, failed},
		{"final success", nil, History{}, final(exit(0)), 0, succeeded},
		{"final, the first of two successes in a row", func(p *Policy) { p.Consecutive = 2 }, History{}, final(exit(0)), 0, failed},
		{"final, in the last attempt", nil, History{Counted: 4}, final(exit(1)), 0, failed},
		{"final, budget used up", budget(time.Minute), History{}, final(exit(1)), time.Hour, failed},
		{"final, INT", nil, History{}, final(stop(exit(1), os.Interrupt)), 0, cancelled},
		{"final, TERM", nil, History{}, final(stop(exit(1), syscall.SIGTERM)), 0, Decision{Verdict: VerdictInterrupted}},

		{"first of two successes in a row", func(p *Policy) { p.Consecutive = 2 }, History{}, exit(0), 0, retry},
		{"second of two", func(p *Policy) { p.Consecutive = 2 }, History{Successes: 1}, exit(0), 0, succeeded},
		{"not enough successes in the last attempt", func(p *Policy) { p.Consecutive = 2 }, History{Counted: 4}, exit(0), 0, exhausted(ReasonAttempts)},

		{"budget with room", budget(time.Hour), History{}, exit(1), time.Minute, retry},
		{"budget that just fits delay and estimate", budget(12 * time.Second), History{}, exit(1), time.Second, retry},
		{"budget too short for the delay", budget(11 * time.Second), History{}, exit(1), time.Second,
			Decision{Verdict: VerdictRetry, Delay: 8 * time.Second, Shortened: true}},
		{"budget that leaves one estimate", budget(2 * time.Second), History{}, exit(1), time.Second,
			Decision{Verdict: VerdictRetry, Delay: 0, Shortened: true}},
		{"budget that leaves less than the estimate", budget(2 * time.Second), History{Longest: 1500 * time.Millisecond}, exit(1), time.Second,
			exhausted(ReasonBudget)},
		{"budget used up", budget(time.Minute), History{}, Outcome{Exit: 143, Error: ErrorTimeout}, time.Minute, exhausted(ReasonBudget)},
		{"after the last attempt of a budget", budget(time.Hour), History{Final: true}, exit(1), time.Second, exhausted(ReasonBudget)},
		{"attempts go before the budget", budget(time.Second), History{Counted: 4}, exit(1), time.Minute, exhausted(ReasonAttempts)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.history.Began = epoch
			tt.want.Success = tt.outcome.Exit == 0
			got := Decide(policy(t, tt.change), tt.history, tt.outcome, epoch.Add(tt.elapsed), half)
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
			t.Errorf("step %d: delay %v, want %v", i, d.Delay, s.want)
		}
		h = h.After(p, s.outcome, d)
	}
}

// The delay before the last retry is what decorrelated jitter grows from.
func TestDecidePassesThePreviousDelay(t *testing.T) {
	p := policy(t, func(p *Policy) { p.Backoff, _ = backoff.Parse("exp:1s", "decorrelated") })
	h := History{Began: epoch, Counted: 1, Own: Progress{1, 10 * time.Second}}
	almostOne := func() float64 { return 1 - 1e-12 }
	if d := Decide(p, h, exit(1), epoch, almostOne); d.Delay < 29*time.Second || d.Delay > 30*time.Second {
		t.Errorf("delay %v, want just under 30s", d.Delay)
	}
}

func TestHistoryAfter(t *testing.T) {
	p := policy(t, func(p *Policy) { p.Consecutive = 3 })
	retry := Decision{Verdict: VerdictRetry, Delay: 7 * time.Second, Shortened: true}
	success := retry
	success.Success = true
	ruled := Decision{Verdict: VerdictRetry, Delay: 3 * time.Second, Rule: 2}
	interrupted := Decision{Verdict: VerdictInterrupted}
	before := History{Made: 3, Counted: 2, Delay: time.Second, Own: Progress{2, time.Second}, Rule: 2, Ruled: Progress{4, time.Second}, Successes: 1, Crashes: 1, Longest: time.Minute}
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
			h.Counted, h.Delay, h.Own, h.Rule, h.Successes, h.Final = 3, 7*time.Second, Progress{3, 7 * time.Second}, 0, 0, true
		})},
		{"failure under the same rule", exit(1), ruled, after(func(h *History) {
			h.Counted, h.Delay, h.Ruled, h.Successes = 3, 3*time.Second, Progress{5, 3 * time.Second}, 0
		})},
		{"success", exit(0), success, after(func(h *History) {
			h.Counted, h.Delay, h.Own, h.Rule, h.Ruled = 3, 7*time.Second, Progress{1, 7 * time.Second}, 0, Progress{}
			h.Successes, h.Final = 2, true
		})},
		{"crash", Crashed(), interrupted, after(func(h *History) { h.Interrupted, h.Crashes = 1, 2 })},
		{"interrupted by TERM", Outcome{Exit: 143, Duration: time.Hour}, interrupted, after(func(h *History) { h.Interrupted, h.Longest = 1, time.Hour })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := before.After(p, tt.outcome, tt.decision); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
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
		{"too little left for the estimate", budget, History{Longest: time.Minute}, 10 * time.Second, 30 * time.Second, VerdictExhausted},
		{"the last attempt is not checked again", budget, History{Longest: time.Minute, Final: true}, 10 * time.Second, 30 * time.Second, VerdictRetry},
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
