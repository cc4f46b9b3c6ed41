package session

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

func testHost(environ ...string) *Host {
	return &Host{Environ: environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
}

func TestRetentionOf(t *testing.T) {
	hour, forever := flags.Duration(time.Hour), flags.Duration(0)
	tests := []struct {
		flag     *flags.Duration
		variable string
		want     time.Duration
	}{
		{flag: nil, variable: "", want: 30 * 24 * time.Hour},
		{flag: nil, variable: "2d", want: 48 * time.Hour},
		{flag: nil, variable: "0", want: 0},
		{flag: &hour, variable: "2d", want: time.Hour},
		{flag: &forever, variable: "2d", want: 0},
		{flag: &hour, variable: "nonsense", want: time.Hour},
	}
	for _, tt := range tests {
		getenv := func(string) string { return tt.variable }
		if got, err := RetentionOf(tt.flag, getenv); err != nil || got != tt.want {
			t.Errorf("%v, %q: got %v, %v, want %v", tt.flag, tt.variable, got, err, tt.want)
		}
	}
	_, err := RetentionOf(nil, func(string) string { return "soon" })
	if err == nil || !strings.HasPrefix(err.Error(), "in the environment (RETRY_RETENTION): ") ||
		!strings.Contains(err.Error(), "\nhint: ") {
		t.Errorf("got %v, want an error that names the variable, with a hint", err)
	}
}

// Sixteen tasks that do not tidy by themselves are no more than one step removes: so the journal does not grow for
// ever.
func TestAStepRemovesWhatCameSinceTheLast(t *testing.T) {
	if most := tidyEvery * (1 + 2*tidyAttempts); most > tidyRows {
		t.Errorf("got up to %d new rows, want at most %d", most, tidyRows)
	}
}

// tidied is how many of three old tasks are left after a task of this process has tidied up.
func tidied(t *testing.T, kept time.Duration, change func(*Journal, *task.Task)) int {
	t.Helper()
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	testkit.Must(t, err)
	g := &Journal{Journal: journal, warn: func(err error) { t.Errorf("warned: %v", err) }}
	defer g.close()
	for range 3 {
		tk := finishedTask(t, g, time.Now().Add(-time.Hour))
		testkit.Must(t, journal.Release(tk.Number))
	}
	own := finishedTask(t, g, time.Now())
	own.AttemptCount = tidyAttempts + 1
	if change != nil {
		change(g, own)
	}
	testkit.Must(t, g.tidy(t.Context(), testHost(), own, kept))
	var tasks []*task.Task
	for tk, err := range journal.All(t.Context(), state.Filter{}) {
		testkit.Must(t, err)
		tasks = append(tasks, tk)
	}
	if !slices.ContainsFunc(tasks, func(t *task.Task) bool { return t.ID == own.ID }) {
		t.Error("got a journal without its own task, want it kept")
	}
	return len(tasks) - 1
}

// finishedTask returns a task that ran once and ended at a time.
func finishedTask(t *testing.T, g *Journal, at time.Time) *task.Task {
	t.Helper()
	tk := &task.Task{
		ID: t.Name() + at.String(), Kind: task.KindCommand, Command: []string{"x"}, Policy: task.DefaultPolicy(), Status: task.Pending, CreatedAt: at,
	}
	testkit.Must(t, g.Claim(t.Context(), tk, at))
	tk.AttemptCount, tk.Status = 1, task.InFlight
	a := task.Attempt{Number: 1, StartedAt: at, Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	tk.ApplyDecision(a, at)
	testkit.Must(t, g.Record(t.Context(), tk, a))
	return tk
}

func TestTidy(t *testing.T) {
	tests := map[string]struct {
		kept   time.Duration
		change func(*Journal, *task.Task)
		left   int
	}{
		"after many attempts":       {kept: time.Minute, change: nil, left: 0},
		"kept long enough":          {kept: 2 * time.Hour, change: nil, left: 3},
		"kept for ever":             {kept: 0, change: nil, left: 3},
		"kept for less than it ran": {kept: time.Nanosecond, change: nil, left: 0},
		"after a few attempts": {kept: time.Minute,
			change: func(_ *Journal, t *task.Task) { t.AttemptCount = tidyAttempts }, left: 3},
		"every sixteenth": {
			kept:   time.Minute,
			change: func(_ *Journal, t *task.Task) { t.AttemptCount, t.Number = 1, 2*tidyEvery },
			left:   0,
		},
		"while it is to be resumed": {kept: time.Minute,
			change: func(_ *Journal, t *task.Task) { t.Status = task.Pending }, left: 3},
		"a task the journal never had": {kept: time.Minute, change: func(_ *Journal, t *task.Task) { t.Number = 0 },
			left: 3},
		"a journal that failed meanwhile": {kept: time.Minute,
			change: func(g *Journal, _ *task.Task) { g.broken.Store(true) }, left: 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tidied(t, tt.kept, tt.change); got != tt.left {
				t.Errorf("got %d tasks left, want %d", got, tt.left)
			}
		})
	}
}

func TestTidyReturnsItsError(t *testing.T) {
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	testkit.Must(t, err)
	testkit.Must(t, journal.Close())
	g := &Journal{Journal: journal, warn: func(err error) { t.Errorf("warned: %v", err) }}
	tk := &task.Task{Number: tidyEvery, Status: task.Succeeded, FinishedAt: time.Now()}
	err = g.tidy(t.Context(), testHost(), tk, time.Hour)
	if err == nil || !strings.HasPrefix(err.Error(), "remove old tasks from the journal: ") {
		t.Errorf("got %v, want the error of removing old tasks", err)
	}
}

// Without a journal the phase is a hash of the task's id: the same for one task, another for the next.
func TestPhaseOfAnId(t *testing.T) {
	first, second := phaseOf("01a2035a-20cb-7ca9-8ad0-97836bbd799a"), phaseOf("01a2035a-20cb-7ca9-8ad0-97836bbd799b")
	if first != phaseOf("01a2035a-20cb-7ca9-8ad0-97836bbd799a") || first == second {
		t.Errorf("got %v and %v, want two phases that depend on the id alone", first, second)
	}
	if min(first, second) < 0 || max(first, second) >= 1 {
		t.Errorf("got %v and %v, want phases in [0, 1)", first, second)
	}
}
