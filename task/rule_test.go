package task

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
)

// lockBusy backs off, but for exit 75: a lock that is busy, which is asked for again soon and bounded.
func lockBusy(t testing.TB) *Policy {
	t.Helper()
	p := DefaultPolicy()
	p.Attempts = 0
	p.Backoff, _ = backoff.Parse("exp:10s..10m", "none")
	for _, r := range [][3]string{{"75", "constant:500ms", "30%"}, {"signal", "exp:1s", "none"}} {
		rule, err := ParseRule(r[0], r[1], r[2])
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, rule)
	}
	return &p
}

func TestRulesGiveTheirDelay(t *testing.T) {
	p := lockBusy(t)
	killed := Outcome{Exit: 137, Signal: "SIGKILL"}
	steps := []struct {
		outcome Outcome
		rule    int
		want    time.Duration
	}{
		{exit(1), 0, 10 * time.Second},
		{exit(75), 1, 500 * time.Millisecond}, {exit(75), 1, 500 * time.Millisecond},
		{exit(1), 0, 20 * time.Second}, // the others back off from where they were
		{killed, 2, time.Second}, {killed, 2, 2 * time.Second},
		{exit(75), 1, 500 * time.Millisecond},
		{killed, 2, time.Second}, // a rule begins anew
		{Crashed(), 0, 0},
		{killed, 2, 2 * time.Second}, // a crash came between, but no other delay
		{exit(1), 0, 40 * time.Second},
	}
	h := History{Began: epoch}
	for i, s := range steps {
		d := Decide(p, h, s.outcome, epoch, half)
		if d.Delay != s.want || d.Rule != s.rule {
			t.Errorf("step %d: delay %v by rule %d, want %v by rule %d", i, d.Delay, d.Rule, s.want, s.rule)
		}
		h = h.After(p, s.outcome, d)
	}
	if h.Made != len(steps) || h.Counted != len(steps)-1 {
		t.Errorf("%d made, %d counted", h.Made, h.Counted)
	}
}

// However the outcomes mix: a busy lock waits 350 to 650 ms, and the others wait what they would wait without it.
func TestABusyLockNeverBacksOff(t *testing.T) {
	p := lockBusy(t)
	rapid.Check(t, func(t *rapid.T) {
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		h := History{Began: epoch, Phase: dice.Float64()}
		others := 0
		for _, busy := range rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "busy") {
			o := exit(1)
			if busy {
				o = exit(75)
			}
			d := Decide(p, h, o, epoch, dice.Float64)
			switch {
			case d.Verdict != VerdictRetry:
				t.Fatalf("%+v", d)
			case busy && (d.Delay < 350*time.Millisecond || d.Delay > 650*time.Millisecond):
				t.Fatalf("a busy lock waits %v", d.Delay)
			case !busy:
				others++
				if want := p.Backoff.Base(others); d.Delay != want {
					t.Fatalf("failure %d of the others waits %v, want %v", others, d.Delay, want)
				}
			}
			h = h.After(p, o, d)
		}
	})
}

// A rule gives a delay, not another attempt.
func TestARuleMakesNothingEligible(t *testing.T) {
	p := lockBusy(t)
	p.StopOn = conditions(t, "75")
	if d := Decide(p, History{Began: epoch}, exit(75), epoch, half); d.Verdict != VerdictFailed || d.Rule != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestParseRuleRefuses(t *testing.T) {
	for _, tt := range []struct{ when, curve, jitter, want string }{
		{"", "constant:1s", "", "when: condition"},
		{"foo", "constant:1s", "", "when: condition"},
		{"75", "", "", "parse backoff"},
		{"75", "constant:1s", "lots", "parse jitter"},
	} {
		if _, err := ParseRule(tt.when, tt.curve, tt.jitter); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// fake is an expression without a library: the number of bytes of stderr is above a limit, and output it cannot read is trouble.
type fake struct{ limit int }

var errUnreadable = errors.New("cannot be evaluated")

func (f fake) Match(e Evidence) (bool, error) {
	if strings.Contains(e.Stderr, "?") {
		return false, errUnreadable
	}
	return len(e.Stderr) > f.limit, nil
}

func (f fake) Looks() CaptureMode { return CaptureStderr }

func TestDecideWithExpressions(t *testing.T) {
	p := DefaultPolicy()
	p.StopOn = []Condition{{text: "long", expression: fake{LookedAt - 1}}}
	if looks := p.Looks(); looks != CaptureStderr {
		t.Errorf("looks at %s", looks)
	}
	decide := func(stderr string) Decision {
		o := exit(1)
		o.Stderr = stderr
		return Decide(&p, History{Began: epoch}, o, epoch, half)
	}
	if d := decide(strings.Repeat("x", LookedAt)); d.Verdict != VerdictFailed || d.Trouble != nil {
		t.Errorf("got %+v", d)
	}
	// What cannot be evaluated does not match, and is told.
	if d := decide("?"); d.Verdict != VerdictRetry || !errors.Is(d.Trouble, errUnreadable) {
		t.Errorf("got %+v", d)
	}
}

// A rule gives a delay: where none follows, it matters to nobody that it cannot be evaluated.
func TestARuleIsNoTroubleAtTheEnd(t *testing.T) {
	p := DefaultPolicy()
	p.Rules = []Rule{{When: Condition{text: "long", expression: fake{}}, Backoff: p.Backoff}}
	o := exit(1)
	o.Stderr = "?"
	if d := Decide(&p, History{Began: epoch}, o, epoch, half); d.Verdict != VerdictRetry || !errors.Is(d.Trouble, errUnreadable) {
		t.Errorf("got %+v", d)
	}
	if d := Decide(&p, History{Began: epoch, Counted: p.Attempts - 1}, o, epoch, half); d.Verdict != VerdictExhausted || d.Trouble != nil {
		t.Errorf("got %+v", d)
	}
}

// Conditions see the number of the attempt and the time since the task began, also after it was given fresh attempts.
func TestEvidence(t *testing.T) {
	e := History{Began: epoch, Made: 7}.evidence(exit(3), epoch.Add(time.Minute))
	if e.Attempt != 8 || e.Elapsed != time.Minute || e.Exit != 3 {
		t.Errorf("got %+v", e)
	}
	if e := (History{Began: epoch}).evidence(exit(3), epoch.Add(-time.Hour)); e.Elapsed != 0 { // the clock was set back
		t.Errorf("got %+v", e)
	}
}

func TestConditionIsAnExpression(t *testing.T) {
	for text, want := range map[string]bool{
		"1,75,100-120": false, "SIGSEGV": false, " any , timeout ": false, "5xx": false, "": false, "signals": false, "1-": false,
		"exit == 1": true, "not timeout": true, "exit in [1, 75]": true, "1.5": true, "!any": true, "a_b": true,
	} {
		if got := isExpression(strings.TrimSpace(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestCaptureModes(t *testing.T) {
	modes := []CaptureMode{CaptureNone, CaptureStderr, CaptureBoth}
	for i, a := range modes {
		for j, b := range modes {
			if got := a.And(b); got != modes[max(i, j)] {
				t.Errorf("%s and %s are %s", a, b, got)
			}
		}
	}
	if got := CaptureMode("").And(""); got != CaptureNone {
		t.Errorf("nothing and nothing are %q", got)
	}
}

// The journal keeps the end of what was looked at, and lets go of the rest.
func TestBrief(t *testing.T) {
	long := strings.Repeat("a", LookedAt-1) + "z"
	o := Outcome{Stdout: "short", Stderr: long}.Brief()
	if o.Stdout != "short" || len(o.Stderr) != Kept || !strings.HasSuffix(o.Stderr, "az") {
		t.Errorf("%d bytes of stdout, %d of stderr", len(o.Stdout), len(o.Stderr))
	}
}

// Playing policies through for a million tasks must not wait for the garbage collector.
func TestDecideAllocatesNothing(t *testing.T) {
	p := lockBusy(t)
	h := History{Began: epoch, Phase: 0.3}
	for _, o := range []Outcome{exit(1), exit(75)} {
		allocated := testing.AllocsPerRun(100, func() {
			d := Decide(p, h, o, epoch, half)
			h.After(p, o, d)
		})
		if allocated > 0 {
			t.Errorf("exit %d: %v allocations for a decision", o.Exit, allocated)
		}
	}
}
