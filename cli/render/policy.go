package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Policy writes a policy in one line.
func Policy(p *task.Policy) string {
	attempts := "no limit of attempts"
	if p.Attempts > 0 {
		attempts = plural(p.Attempts, "attempt")
	}
	parts := []string{attempts, "backoff " + p.Backoff.Curve(), "jitter " + p.Backoff.Jitter()}
	limits := []struct {
		name  string
		limit time.Duration
	}{{"timeout", p.Timeout}, {"budget", p.Budget}, {"reset after", p.ResetAfter}}
	for _, l := range limits {
		if l.limit > 0 {
			parts = append(parts, l.name+" "+text.FormatDuration(l.limit.Round(time.Millisecond)))
		}
	}
	if p.Consecutive > 1 {
		parts = append(parts, plural(p.Consecutive, "success")+" in a row")
	}
	for _, l := range []struct {
		name string
		list []task.Condition
	}{{"success on", p.SuccessOn}, {"stop on", p.StopOn}, {"retry on", p.RetryOn}} {
		for _, c := range l.list {
			parts = append(parts, l.name+" "+brief(c.String()))
		}
	}
	for _, r := range p.Rules {
		parts = append(parts, "where "+brief(r.When.String())+": backoff "+r.Backoff.Curve()+", jitter "+r.Backoff.Jitter())
	}
	return brief(p.Name) + ": " + strings.Join(parts, ", ")
}

// Attempts counts attempts in words.
func Attempts(n int) string { return plural(n, "attempt") }

func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return strconv.Itoa(n) + " " + noun + "es"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
