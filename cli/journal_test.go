package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
)

// A write of the journal fails in the middle of a run. The command goes on, one warning says so, and the end is written all
// the same, so that no resume runs a task again that has succeeded.
func TestGuardedJournalWritesTheEnd(t *testing.T) {
	journal, err := state.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	g := &guardedJournal{journal: journal, warn: func(err error) { warnings = append(warnings, err.Error()) }}
	defer g.close()
	task := &runner.Task{ID: "id", Kind: runner.KindCommand, Command: []string{"x"}, Policy: runner.DefaultPolicy(), Status: runner.Pending, CreatedAt: time.Now()}
	if err := g.Claim(t.Context(), task, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := g.failed(errors.New("database is locked"), nil, false); err != nil || len(warnings) != 1 {
		t.Fatalf("%v, warnings %q", err, warnings)
	}
	task.AttemptCount, task.Status = 1, runner.InFlight
	a := runner.Attempt{Number: 1, StartedAt: time.Now(), Decision: runner.Decision{Verdict: runner.VerdictSucceeded}}
	task.Decided(a, time.Now())
	if err := g.Record(t.Context(), task, a); err != nil {
		t.Fatal(err)
	}
	found, err := journal.Find(t.Context(), "id")
	if err != nil || found.Status != runner.Succeeded {
		t.Errorf("%+v, %v", found, err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "going on without a journal") {
		t.Errorf("warnings %q", warnings)
	}
}
