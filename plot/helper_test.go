package plot

import (
	"testing"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// fataler is a test, or a check of one.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// subject is a policy with so many attempts; 0 is no limit.
func subject(t fataler, curve, jitter string, attempts int) Subject {
	t.Helper()
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	p := task.DefaultPolicy()
	p.Backoff, p.Attempts = spec, attempts
	return Subject{Label: curve + "/" + spec.Jitter(), Policy: p}
}

func study(t testing.TB, s Subject, o Options) Study {
	t.Helper()
	result, err := NewStudy(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func run(t testing.TB, simulation Simulation, s Subject) Trial {
	t.Helper()
	trial, err := simulation.Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return trial
}
