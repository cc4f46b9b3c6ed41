package task

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
)

// A policy is written by hand as the library writes it.
func TestAPolicyIsWrittenAsByTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Map(rapid.Int64Range(0, int64(90*24*time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
		spec := rapid.SampledFrom([][2]string{{"exp:1s..1m", "phase"}, {"list:1s,5s,1m", "30%"}, {"poly:15s+n^4", "add:30s*n"}, {"constant:0", "none"}}).Draw(t, "spec")
		curve, err := backoff.Parse(spec[0], spec[1])
		if err != nil {
			t.Fatal(err)
		}
		p := Policy{
			Name: rapid.String().Draw(t, "name"), Attempts: rapid.Int().Draw(t, "attempts"), Backoff: curve,
			Timeout: duration.Draw(t, "timeout"), KillAfter: duration.Draw(t, "kill after"), Budget: duration.Draw(t, "budget"),
			ResetAfter: duration.Draw(t, "reset after"), Consecutive: rapid.Int().Draw(t, "consecutive"),
			RetryOn: drawConditions(t), StopOn: drawConditions(t), SuccessOn: drawConditions(t), Rules: drawRules(t),
		}
		got, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(policyJSON{
			Name: p.Name, Attempts: p.Attempts, Backoff: curve.Curve(), Jitter: curve.Jitter(), Timeout: millisOf(p.Timeout), KillAfter: millisOf(p.KillAfter),
			Budget: millisOf(p.Budget), ResetAfter: millisOf(p.ResetAfter), Consecutive: p.Consecutive,
			RetryOn: wordsOf(p.RetryOn), StopOn: wordsOf(p.StopOn), SuccessOn: wordsOf(p.SuccessOn), Rules: rulesOf(p.Rules),
		})
		if err != nil || string(got) != string(want) {
			t.Fatalf("got\n%s\nwant\n%s, %v", got, want, err)
		}
	})
}

func drawConditions(t *rapid.T) (list []Condition) {
	for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{"1", "75", "100-120", "SIGSEGV", "timeout", "any"}), 0, 4).Draw(t, "conditions") {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func drawRules(t *rapid.T) (rules []Rule) {
	for _, when := range drawConditions(t) {
		rule, err := ParseRule(when.String(), "exp:1s..1m", rapid.SampledFrom([]string{"", "30%"}).Draw(t, "jitter"))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return rules
}

func rulesOf(rules []Rule) []ruleJSON {
	list := []ruleJSON{}
	for _, r := range rules {
		list = append(list, ruleJSON{r.When.String(), r.Backoff.Curve(), r.Backoff.Jitter()})
	}
	return list
}

func wordsOf(list []Condition) []string {
	texts := []string{}
	for _, c := range list {
		texts = append(texts, c.String())
	}
	return texts
}

func millisOf(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := max(1, int64(d/time.Millisecond))
	return &ms
}
