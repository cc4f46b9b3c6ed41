package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// MaxAttempts is the most attempts that a policy of the API can have, unless a limit says otherwise.
const MaxAttempts = 1000

// Policy is a policy as the API writes it. Of the two spellings of a curve and of what is retried, the one with numbers
// is written where it can say the same: a client that knows that one alone can read, change and send it back.
type Policy struct {
	PolicyID     *string `json:"policyId"`
	MaxAttempts  int     `json:"maxAttempts"` // 0 = no limit, of policies that were not made by the API
	InitialDelay *int64  `json:"initialDelayMs"`
	Multiplier   *number `json:"multiplier"`
	MaxDelay     *int64  `json:"maxDelayMs"`
	TotalBudget  *int64  `json:"totalBudgetMs"`
	JitterType   *string `json:"jitterType"`
	Statuses     []int   `json:"retryableStatusCodes"` // null: those of docs/http.md

	Backoff     string   `json:"backoff,omitempty"`
	Jitter      string   `json:"jitter,omitempty"`
	RetryOn     []string `json:"retryOn,omitempty"`
	StopOn      []string `json:"stopOn,omitempty"`
	SuccessOn   []string `json:"successOn,omitempty"`
	Rules       []Rule   `json:"rules,omitempty"`
	Timeout     int64    `json:"timeoutMs,omitempty"`
	KillAfter   *int64   `json:"killAfterMs,omitempty"`
	ResetAfter  int64    `json:"resetAfterMs,omitempty"`
	Consecutive int      `json:"consecutive,omitempty"`
	Ambiguous   string   `json:"ambiguous,omitempty"`
}

// Rule is a rule of a policy.
type Rule struct {
	When    string `json:"when"`
	Backoff string `json:"backoff"`
	Jitter  string `json:"jitter,omitempty"`
}

// number is a float without an exponent.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return []byte(text.FormatNumber(float64(n))), nil }

// View is a spelling of policies.
type View int

// The views of a policy.
const (
	ViewNumbers View = iota // initialDelayMs, multiplier …, where they can say it
	ViewSpec                // backoff, jitter and retryOn, as the command line spells them
)

// EncodePolicy returns a policy as the API writes it. One without a name has the policyId null.
func EncodePolicy(p *task.Policy, view View) Policy {
	w := Policy{
		MaxAttempts: p.Attempts, TotalBudget: milliseconds(p.Budget),
		StopOn: texts(p.StopOn), SuccessOn: texts(p.SuccessOn),
		Timeout: p.Timeout.Milliseconds(), ResetAfter: p.ResetAfter.Milliseconds(), Ambiguous: string(p.Ambiguous),
	}
	if p.Name != "" {
		w.PolicyID = &p.Name
	}
	if p.KillAfter != defaultKillAfter {
		w.KillAfter = new(p.KillAfter.Milliseconds())
	}
	if p.Consecutive > 1 {
		w.Consecutive = p.Consecutive
	}
	for _, r := range p.Rules {
		w.Rules = append(w.Rules, Rule{When: r.When.String(), Backoff: r.Backoff.Curve(), Jitter: r.Backoff.Jitter()})
	}
	if view == ViewSpec || !w.setCurve(p.Backoff) {
		w.Backoff, w.Jitter = p.Backoff.Curve(), p.Backoff.Jitter()
	}
	if statuses, ok := statusesOf(p.RetryOn); ok && view == ViewNumbers {
		w.Statuses = statuses
	} else {
		w.RetryOn = texts(p.RetryOn)
	}
	return w
}

const defaultKillAfter = 5 * time.Second

// setCurve sets the numbers of a curve, and reports whether they say all of it.
func (w *Policy) setCurve(spec backoff.Spec) bool {
	kind := jitterTypeOf(spec.Jitter())
	c, ok := parseCurve(spec.Curve())
	if kind == "" || !ok || c.spec() != spec.Curve() {
		return false
	}
	w.InitialDelay, w.MaxDelay, w.Multiplier = new(c.initial), new(c.most), new(number(c.multiplier))
	w.JitterType = &kind
	return true
}

// curve is an exponential curve in numbers.
type curve struct {
	initial, most int64 // milliseconds
	multiplier    float64
}

// spec spells the curve as the command line does.
func (c curve) spec() string {
	ms := func(n int64) string { return text.FormatDuration(time.Duration(n) * time.Millisecond) }
	spec := "exp:" + ms(c.initial)
	if c.multiplier != 2 {
		spec += "*" + text.FormatNumber(c.multiplier)
	}
	return spec + ".." + ms(c.most)
}

// parseCurve reads the canonical spelling of an exponential curve with a cap.
func parseCurve(spec string) (c curve, ok bool) {
	body, isExp := strings.CutPrefix(spec, "exp:")
	shape, most, capped := strings.Cut(body, "..")
	first, factor, given := strings.Cut(shape, "*")
	if !given {
		factor = "2"
	}
	initial, err := text.ParseDuration(first)
	limit, err2 := text.ParseDuration(most)
	multiplier, err3 := strconv.ParseFloat(factor, 64)
	return curve{initial.Milliseconds(), limit.Milliseconds(), multiplier},
		isExp && capped && err == nil && err2 == nil && err3 == nil
}

// JitterTypes are the values of jitterType.
func JitterTypes() []string { return []string{"FULL", "EQUAL", "DECORRELATED", "PHASE", "NONE"} }

func jitterTypeOf(jitter string) string {
	if kind := strings.ToUpper(jitter); slices.Contains(JitterTypes(), kind) {
		return kind
	}
	return ""
}

// statusesOf returns the statuses that a retry-on made of retryableStatusCodes names; nil where there is no retry-on.
func statusesOf(retryOn []task.Condition) (statuses []int, ok bool) {
	if len(retryOn) == 0 {
		return nil, true
	}
	list, ok := strings.CutSuffix(retryOn[0].String(), task.Faults)
	if !ok || len(retryOn) > 1 {
		return nil, false
	}
	statuses = []int{}
	for item := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		status, err := strconv.Atoi(item)
		if item != "" && (err != nil || strconv.Itoa(status) != item) {
			return nil, false
		}
		if item != "" {
			statuses = append(statuses, status)
		}
	}
	return statuses, statusCondition(statuses) == retryOn[0].String()
}

// statusCondition is the condition that stands for retryableStatusCodes: the statuses, and what has none.
func statusCondition(statuses []int) string {
	var b strings.Builder
	for _, status := range statuses {
		fmt.Fprintf(&b, "%d,", status)
	}
	return b.String() + task.Faults
}

func texts(conditions []task.Condition) (all []string) {
	for _, c := range conditions {
		all = append(all, c.String())
	}
	return all
}

// milliseconds returns nil for no limit.
func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(max(1, d.Milliseconds()))
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// SamePolicy reports whether two policies say the same.
func SamePolicy(a, b task.Policy) bool {
	first, err := json.Marshal(a)
	second, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(first, second)
}
