package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// drawn returns the first random numbers of an attempt.
func drawn(random func() float64, t *task.Task, attempt int) []float64 {
	t.AttemptCount = attempt
	return []float64{random(), random(), random()}
}

func seeded(n uint64) *task.Task {
	return &task.Task{Options: task.Options{Seed: new(n)}}
}

// A resumed run draws the same numbers for an attempt as one that was never interrupted.
func TestSeededNumbersAreThoseOfTheAttempt(t *testing.T) {
	whole := seeded(7)
	draw := random(whole)
	var all [][]float64
	for attempt := 1; attempt <= 5; attempt++ {
		numbers := drawn(draw, whole, attempt)
		for i, earlier := range all {
			if slices.Equal(numbers, earlier) {
				t.Errorf("attempts %d and %d: got %v twice, want other numbers", i+1, attempt, numbers)
			}
		}
		all = append(all, numbers)
	}
	for from := 1; from <= 5; from++ {
		resumed := seeded(7)
		again := random(resumed)
		for attempt := from; attempt <= 5; attempt++ {
			if got := drawn(again, resumed, attempt); !slices.Equal(got, all[attempt-1]) {
				t.Errorf("resumed at %d, attempt %d: got %v, want %v", from, attempt, got, all[attempt-1])
			}
		}
	}
	other := seeded(8)
	if got := drawn(random(other), other, 1); slices.Equal(got, all[0]) {
		t.Errorf("another seed: got %v again, want other numbers", got)
	}
}

// The numbers that seeds stand for never change: a run can be repeated with any later retry.
func TestSeededNumbersNeverChange(t *testing.T) {
	tk := seeded(42)
	got := slices.Concat(drawn(random(tk), tk, 1), drawn(random(tk), tk, 2))
	want := []float64{
		0.8198675049548058, 0.06925341793671824, 0.33912145311103536, 0.4523266270407682, 0.2155597473269374, 0.38051759780842,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnseededNumbersDiffer(t *testing.T) {
	first, second := &task.Task{}, &task.Task{}
	if slices.Equal(drawn(random(first), first, 1), drawn(random(second), second, 1)) {
		t.Error("got the same numbers for two tasks, want others")
	}
}

// delays returns the delays that a task gets for its failures, resumed before the attempt of that number; 0 = never.
func delays(t *testing.T, jitter string, seed *uint64, resume int) (all []time.Duration) {
	t.Helper()
	tk := &task.Task{Options: task.Options{Seed: seed}, Policy: task.DefaultPolicy()}
	var err error
	if tk.Policy.Backoff, err = backoff.Parse("exp:1s", jitter); err != nil {
		t.Fatal(err)
	}
	tk.Policy.Attempts = 0
	draw := random(tk)
	tk.History.Phase = tk.Options.Phase(0.3)
	for attempt := 1; attempt <= 6; attempt++ {
		if attempt == resume {
			draw = random(tk)
			tk.History.Phase = tk.Options.Phase(0.7) // of a journal on another machine
		}
		tk.AttemptCount = attempt
		o := task.Outcome{Exit: 1}
		d := task.Decide(&tk.Policy, tk.History, o, time.Time{}, draw)
		tk.ApplyDecision(task.Attempt{Number: attempt, Outcome: o, Decision: d}, time.Time{})
		all = append(all, d.Delay)
	}
	return all
}

// --seed makes every jitter repeatable, also where the run is cut in two.
func TestSeededDelaysAreTheSameAfterAResume(t *testing.T) {
	for _, jitter := range []string{"phase", "full", "equal", "decorrelated", "30%", "add:5s"} {
		want := delays(t, jitter, new(uint64(7)), 0)
		for resume := 2; resume <= 6; resume++ {
			if got := delays(t, jitter, new(uint64(7)), resume); !slices.Equal(got, want) {
				t.Errorf("%s, resumed at %d: got %v, want %v", jitter, resume, got, want)
			}
		}
		if got := delays(t, jitter, new(uint64(8)), 0); slices.Equal(got, want) {
			t.Errorf("%s, another seed: got the delays %v again, want others", jitter, got)
		}
	}
}

func TestSharedGroup(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	for _, foreground := range []bool{false, true} {
		shares, _ := sharesGroup(&flags.ProcessGroupFlags{Foreground: foreground, Group: !foreground}, null)
		if shares != foreground {
			t.Errorf("got that it shares the group: %v, want %v as the flag says", shares, foreground)
		}
	}
}

// An attempt whose output cannot be held any more is a warning, with a hint where there is something to do.
func TestOutputThatCannotBeHeldIsAWarning(t *testing.T) {
	o, tk := newRecorder(), newTask("true")
	tk.AttemptCount = 3
	run, err := testHost().newTaskRunner(tk, &Journal{}, o, ExecOptions{}, false)
	testkit.Must(t, err)
	run.commands.Output.LimitExceeded(tk, 2<<30)
	run.commands.Output.HoldFailed(tk, errors.New("no space left on device"))
	for i, want := range [][]string{
		{"attempt 3 has written more than 2GiB", "not be tried again", "\nhint: --output-limit "},
		{"no room to hold the output of attempt 3 (no space left on device)", "not be tried again"},
	} {
		for _, part := range want {
			if len(o.warnings) != 2 || !strings.Contains(o.warnings[i], part) {
				t.Errorf("got %q, want %q", o.warnings, part)
			}
		}
	}
}

// recorder is an observer that notes what it is told.
type recorder struct {
	render.Observer
	told     []string
	warnings []string
}

func newRecorder() *recorder { return &recorder{Observer: render.NewQuiet(io.Discard)} }

func (r *recorder) Ended(*task.Task, task.Attempt) { r.told = append(r.told, "ended") }

func (r *recorder) Finished(*task.Task, runner.Result) { r.told = append(r.told, "finished") }

func (r *recorder) Warn(err error) {
	r.told = append(r.told, "warned")
	r.warnings = append(r.warnings, err.Error())
}

// Each option of a task reaches the part that uses it.
func TestTaskRunnerHasTheOptions(t *testing.T) {
	tk := newTask("true")
	tk.Options = task.Options{Stdin: task.StdinNull, Output: task.OutputFinal, OutputLimit: 5, Capture: task.CaptureBoth,
		Seed: new(uint64(1))}
	p := testHost("A=B")
	c, err := p.newTaskRunner(tk, &Journal{}, newRecorder(),
		ExecOptions{Group: &flags.ProcessGroupFlags{Group: true}}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := c.commands
	pipes, _ := e.Stdin.(*argumentPipes)
	if pipes == nil || pipes.Stdin != (stdio.NullStdin{}) || e.Output.Mode != task.OutputFinal || e.Output.Limit != 5 ||
		e.Output.Capture != task.CaptureBoth {
		t.Errorf("got %+v, want the streams of the options %+v", e, tk.Options)
	}
	if e.Output.Stdout != p.Stdout || e.Output.Stderr != p.Stderr || !slices.Equal(e.Env, []string{"A=B"}) ||
		e.SharedGroup || e.Output.Temporary == nil || e.Output.LimitExceeded == nil || e.Output.HoldFailed == nil ||
		e.Output.Cut == nil {
		t.Errorf("got %+v, want what the process has", e)
	}
	if c.Hooks == nil || c.Random() != random(tk)() || c.Runner.Executor != runner.Executor(e) {
		t.Errorf("got %+v, want hooks, the seed's numbers and the executor", c.Runner)
	}
}

// newTask returns a task that no journal knows yet.
func newTask(command ...string) *task.Task {
	now := time.Now()
	return &task.Task{
		ID: fmt.Sprintf("01a1fb79-5735-7565-b3a1-%012d",
			now.UnixNano()%1e12), Kind: task.KindCommand, Command: command, Policy: task.DefaultPolicy(),
		IdempotencyKey: "key", CreatedAt: now, Status: task.Pending, History: task.History{Began: now},
	}
}

// openJournal opens a journal as a run does, in a directory of its own.
func testJournal(t *testing.T, warn func(error)) *Journal {
	t.Helper()
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &Journal{Journal: journal, warn: warn}
	t.Cleanup(g.close)
	return g
}

// A task whose stdin is lost is not resumed: an attempt would read another stdin.
func TestResumeRefusesALostStdin(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	tk := newTask("cat")
	tk.Options.Stdin, tk.Directory = task.StdinReplay, t.TempDir()
	if err := g.Claim(t.Context(), tk, time.Now()); err != nil {
		t.Fatal(err)
	}
	how := ResumeOptions{ExecOptions: ExecOptions{Group: &flags.ProcessGroupFlags{}}}
	if _, err := testHost().NewResumer(tk, g, newRecorder(), how); !errors.Is(err, state.ErrInputLost) ||
		!strings.Contains(err.Error(), "\nhint: start it anew") {
		t.Errorf("got %v", err)
	}
	keepInput(t, g, tk, "kept")
	run, err := testHost().NewResumer(tk, g, newRecorder(), how)
	if err != nil {
		t.Fatal(err)
	}
	run.Close()
}

// keepInput keeps a task's whole stdin.
func keepInput(t *testing.T, g *Journal, tk *task.Task, content string) {
	t.Helper()
	file, err := g.Journal.KeepInput(tk)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	_, err = file.WriteString(content)
	if err := errors.Join(err, g.Journal.CompleteInput(tk, file)); err != nil {
		t.Fatal(err)
	}
}
