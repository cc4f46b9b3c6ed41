package wire

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

const maxPolicyID = 200

// CheckPolicyID refuses a name that a policy cannot have: it stands in a path.
func CheckPolicyID(name string) error {
	bad := func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }
	if name == "" || len(name) > maxPolicyID || !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, bad) {
		return fmt.Errorf("invalid policy name %q\nhint: a name has letters, digits, spaces within and signs but /,"+
			" and 1 to %d bytes", text.Shorten(name, 40), maxPolicyID)
	}
	return nil
}

// ReadPolicy reads a policy in either spelling. What is left out is as in the default policy. The object remembers
// what is wrong. The name is that of the caller; the field policyId has to say the same, if it is there.
func ReadPolicy(o *problem.Object, limits Limits) task.Policy {
	most := int64(limits.Attempts)
	p := task.DefaultPolicy()
	p.Name = o.String("policyId", "")
	p.Attempts = int(o.Int("maxAttempts", int64(p.Attempts), 1, most))
	p.Budget = readLimit(o, "totalBudgetMs", 0)
	p.Timeout = readTimeout(o, limits.Timeout)
	p.KillAfter = readLimit(o, "killAfterMs", p.KillAfter)
	p.ResetAfter = readLimit(o, "resetAfterMs", 0)
	p.Consecutive = int(o.Int("consecutive", 1, 1, most))
	p.Ambiguous = readAmbiguous(o)
	p.Backoff = readBackoff(o, p.Backoff)
	p.RetryOn = readRetryOn(o)
	p.StopOn = readConditions(o, "stopOn")
	p.SuccessOn = readConditions(o, "successOn")
	rules := o.Objects("rules", maxRules)
	within := withinBody(o, "rules", len(rules))
	for _, r := range rules {
		switch {
		case r == nil:
		case within:
			p.Rules = append(p.Rules, readRule(r))
		default:
			r.Names() // so that none of them is unknown
		}
	}
	return p
}

// maxRules is how many rules a policy has at most.
const maxRules = 100

// maxLimit is the longest time that a policy can name: ten years. Sums of a few of them do not overflow.
const maxLimit = 10 * 365 * 24 * time.Hour

// readLimit reads a time in milliseconds that is longer than 0.
func readLimit(o *problem.Object, name string, fallback time.Duration) time.Duration {
	if !o.Has(name) {
		return fallback
	}
	return time.Duration(o.Int(name, 1, 1, maxLimit.Milliseconds())) * time.Millisecond
}

// readTimeout reads the timeout of an attempt; 0 for none.
func readTimeout(o *problem.Object, most time.Duration) time.Duration {
	timeout := readLimit(o, "timeoutMs", 0)
	if timeout > most {
		o.Failf("timeoutMs", "the timeout is %s, more than %s\nhint: %s",
			text.FormatDuration(timeout), text.FormatDuration(most), allowMore)
	}
	return timeout
}

const allowMore = "start the server with a larger --max-timeout"

func readAmbiguous(o *problem.Object) task.Ambiguous {
	choice := readChoice(o, "ambiguous", []string{string(task.AmbiguousRepeat), string(task.AmbiguousStop)})
	return task.Ambiguous(choice)
}

// readChoice reads a text that is one of a few, or missing.
func readChoice(o *problem.Object, name string, choices []string) string {
	choice := o.String(name, "")
	if choice == "" && !o.Has(name) || slices.Contains(choices, choice) {
		return choice
	}
	if !isText(o, name) {
		return "" // that was said already
	}
	hint := "write " + strings.Join(choices, ", ")
	if near := text.Nearest(choice, choices); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	o.Failf(name, "invalid value %q\nhint: %s", text.Shorten(choice, 40), hint)
	return ""
}

// isText reports whether a field is a text at all.
func isText(o *problem.Object, name string) bool {
	raw := o.Raw(name)
	return len(raw) > 0 && raw[0] == '"'
}

// readBackoff reads the curve in numbers, as a spec, or as both where they say the same.
func readBackoff(o *problem.Object, fallback backoff.Spec) backoff.Spec {
	numbers := readCurve(o)
	jitterType := readChoice(o, "jitterType", JitterTypes())
	spec, jitter := readSpec(o, "backoff"), readSpec(o, "jitter")
	if jitterType != "" && jitter != "" && !strings.EqualFold(jitterType, jitter) {
		o.Failf("jitter", "jitter %q and jitterType %q say different things\nhint: give one of them",
			text.Shorten(jitter, 40), jitterType)
		return fallback
	}
	if jitter == "" {
		jitter = strings.ToLower(jitterType)
	}
	at := "backoff"
	switch {
	case spec == "" && numbers == "" && jitter == "":
		return fallback
	case spec == "" && numbers == "":
		spec, at = fallback.Curve(), "jitter"
	case spec == "":
		spec, at = numbers, "initialDelayMs"
	}
	parsed, err := backoff.Parse(spec, jitter)
	if err == nil && numbers != "" && parsed.Curve() != numbers {
		err = fmt.Errorf("backoff %q and initialDelayMs, multiplier, maxDelayMs say different things"+
			"\nhint: give one of the two", text.Shorten(spec, 40))
	}
	if err == nil {
		return parsed
	}
	if strings.HasPrefix(err.Error(), "parse jitter") || strings.HasPrefix(err.Error(), "jitter ") {
		at = "jitter"
		if o.Has("jitterType") && !o.Has("jitter") {
			at = "jitterType"
		}
	}
	o.Fail(at, err)
	return fallback
}

// readCurve returns the spec of the curve that is given in numbers; empty for none.
func readCurve(o *problem.Object) string {
	given := o.Has("initialDelayMs") || o.Has("multiplier") || o.Has("maxDelayMs")
	most := backoff.Max.Milliseconds()
	c := curve{initial: o.Int("initialDelayMs", 1000, 0, most), multiplier: o.Float("multiplier", 2, 1, 1000)}
	c.most = o.Int("maxDelayMs", max(c.initial, time.Minute.Milliseconds()), 0, most)
	if c.most < c.initial && o.Has("maxDelayMs") {
		o.Failf("maxDelayMs", "the most, %d ms, is below the initial delay, %d ms", c.most, c.initial)
		c.most = c.initial
	}
	if !given {
		return ""
	}
	return c.spec()
}

// readRetryOn reads what is retried, as a list of statuses or as conditions.
func readRetryOn(o *problem.Object) []task.Condition {
	conditions := readConditions(o, "retryOn")
	if !o.Has("retryableStatusCodes") {
		return conditions
	}
	statuses := []int{}
	for _, status := range o.Ints("retryableStatusCodes", maxStatuses, 1, 599) {
		if status > maxGRPC && status < http.StatusContinue {
			o.Failf("retryableStatusCodes", "no protocol has a status %d\nhint: HTTP has 100 to 599, gRPC 1 to %d",
				status, maxGRPC)
			continue
		}
		statuses = append(statuses, int(status))
	}
	slices.Sort(statuses)
	condition := statusCondition(slices.Compact(statuses))
	if o.Has("retryOn") && (len(conditions) != 1 || conditions[0].String() != condition) {
		o.Fail("retryOn", errors.New("retryOn and retryableStatusCodes say different things\nhint: give one of them"))
		return nil
	}
	parsed, err := task.ParseConditions([]string{condition})
	if err != nil {
		o.Fail("retryableStatusCodes", err)
	}
	return parsed
}

// maxStatuses is more than there are.
const maxStatuses = 1000

// maxGRPC is the largest status of gRPC.
const maxGRPC = 16

// maxConditions bounds how many conditions one list of a policy has: each is asked after each attempt. maxCompiled
// bounds the conditions of all tasks of a batch, rules included: to compile one takes up to 0.1 ms.
const (
	maxConditions = 100
	maxCompiled   = 10_000
)

// withinBody refuses more conditions, or rules, than all policies of a body may have together.
func withinBody(o *problem.Object, name string, n int) bool {
	within := n == 0 || o.Within("conditions", n, maxCompiled)
	if !within {
		o.Failf(name, "the body has more than %d conditions together\nhint: name a policy that the tasks share", maxCompiled)
	}
	return within
}

// maxSpec bounds the text of a curve or a jitter: a list of 1,000 delays is shorter.
const maxSpec = 16 << 10

func readSpec(o *problem.Object, name string) string {
	spec := o.String(name, "")
	if len(spec) > maxSpec {
		o.Failf(name, "it has %d bytes, more than %d", len(spec), maxSpec)
		return ""
	}
	return spec
}

func readConditions(o *problem.Object, name string) (conditions []task.Condition) {
	given := o.StringOrList(name, maxConditions)
	if !withinBody(o, name, len(given)) {
		return nil
	}
	for i, condition := range given {
		parsed, err := task.ParseCondition(condition)
		if err != nil {
			at := o.Pointer(name)
			if !isText(o, name) {
				at += "/" + strconv.Itoa(i)
			}
			o.FailAt(at, err)
			continue
		}
		conditions = append(conditions, parsed)
	}
	return conditions
}

func readRule(o *problem.Object) task.Rule {
	o.Require("when", "backoff")
	var rule task.Rule
	var err error
	if when := o.String("when", ""); when != "" {
		if rule.When, err = task.ParseCondition(when); err != nil {
			o.Fail("when", err)
		}
	}
	if spec := readSpec(o, "backoff"); spec != "" {
		if rule.Backoff, err = backoff.Parse(spec, readSpec(o, "jitter")); err != nil {
			o.Fail("backoff", err)
		}
	}
	return rule
}
