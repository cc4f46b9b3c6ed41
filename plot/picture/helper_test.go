package picture

import (
	"strings"
	"testing"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

// study plays "label=spec/jitter" through.
func study(t *testing.T, text string, tasks, retries int) plot.Study {
	t.Helper()
	label, spec, labelled := strings.Cut(text, "=")
	if !labelled {
		spec = text
	}
	curve, jitter, _ := strings.Cut(spec, "/")
	policy := task.DefaultPolicy()
	var err error
	if policy.Backoff, err = backoff.Parse(curve, jitter); err != nil {
		t.Fatal(err)
	}
	policy.Attempts = retries + 1
	s, err := plot.NewStudy(plot.Subject{Label: label, Policy: policy}, plot.Options{Tasks: tasks, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gallery are the pictures that every property is tried on.
func gallery(t *testing.T) map[string][]plot.Study {
	several := func(tasks, retries int, specs ...string) (all []plot.Study) {
		for _, s := range specs {
			all = append(all, study(t, s, tasks, retries))
		}
		return all
	}
	return map[string][]plot.Study{
		"one":         several(100, 8, "exp:1s..1m"),
		"three":       several(100, 8, "exp:10s/full", "exp:10s/equal", "sidekiq"),
		"five":        several(100, 25, "sidekiq", "zizq", "buckets:3", "fib:1s..1h", "list:1s,2s,5s,1m"),
		"far apart":   several(10, 8, "constant:1ms", "exp:365d"),
		"one retry":   several(1, 1, "exp:1s/none"),
		"many":        several(200, 99, "constant:500ms/30%"),
		"most":        several(20, 999, "exp:1s..1m"),
		"at once":     several(100, 8, "constant:0s"),
		"half 0":      several(10, 8, "linear:0s+1h/full", "list:0s,0s,1s"),
		"unbounded":   several(100, 20, "exp:1s/decorrelated"),
		"a year":      several(100, 100, "exp:1s/add:365d"),
		"nanoseconds": several(100, 8, "constant:1ns", "exp:3ns"),
		"labels": several(3, 3, "<&\"'>\x1b\u202eabc\t\xff=exp:1s/decorrelated", strings.Repeat("WIDE", 100)+"=constant:5s",
			"\u05e9\u05dc\u05d5\u05dd \u8a9e=poly:15s+n^4/add:30s*n"),
	}
}
