package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func TestReportRefusesAPathBeforeTheRun(t *testing.T) {
	o, err := Reported(newRecorder(), testHost(), filepath.Join(t.TempDir(), "absent", "x"), &Journal{})
	if o != nil || !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "--report: ") ||
		!strings.Contains(err.Error(), "\nhint: ") {
		t.Errorf("got %v, %v, want an error of --report with a hint", o, err)
	}
	plain := newRecorder()
	if o, err := Reported(plain, testHost(), "", &Journal{}); o != plain || err != nil {
		t.Errorf("without a report: got %v, %v, want the same observer", o, err)
	}
}

// A pipe that nobody reads is an error: retry has ended its task and must not wait for a reader that may never come.
func TestReportToAPipeThatNobodyReads(t *testing.T) {
	read, device, err := os.Pipe()
	testkit.Must(t, err)
	defer func() { _ = device.Close() }()
	path := fmt.Sprint("/dev/fd/", device.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no /dev/fd")
	}
	_ = read.Close()
	if err := files.Replace(path, []byte("report")); err == nil {
		t.Error("got no error, want one")
	}
}

// reports runs a task as the loop does: each decision ends an attempt. It returns the report.
func reports(t *testing.T, g *Journal, tk *task.Task, broken int, decisions ...task.Decision) (report map[string]any,
	path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "report.json")
	o, err := Reported(newRecorder(), testHost(), path, g)
	testkit.Must(t, err)
	ctx := context.Background()
	for i, d := range decisions {
		if i+1 == broken {
			_ = g.failed(errors.New("database is locked"), nil, false)
		}
		testkit.Must(t, g.Claim(ctx, tk, time.Now()))
		tk.AttemptCount++
		tk.Status = task.InFlight
		a := task.Attempt{Number: tk.AttemptCount, StartedAt: time.Now(),
			Outcome: task.Outcome{Exit: i, Stderr: fmt.Sprint("tail ", i+1)}, Decision: d}
		tk.ApplyDecision(a, time.Now())
		testkit.Must(t, g.Record(ctx, tk, a))
		o.Ended(tk, a)
	}
	o.Finished(tk, runner.Result{Decision: decisions[len(decisions)-1]})
	testkit.Must(t, json.Unmarshal([]byte(testkit.Contents(t, path)), &report))
	return report, path
}

var (
	goesOn = task.Decision{Verdict: task.VerdictRetry, Delay: time.Second}
	won    = task.Decision{Verdict: task.VerdictSucceeded}
)

// attemptsOf are the numbers and tails of a report's attempts.
func attemptsOf(report map[string]any) (list []string) {
	for _, a := range report["attempts"].([]any) {
		a := a.(map[string]any)
		list = append(list, fmt.Sprint(a["number"], " ", a["decision"], " ", a["stderr_tail"]))
	}
	return list
}

func TestReportHasAllAttempts(t *testing.T) {
	want := []string{"1 retry tail 1", "2 retry tail 2", "3 succeeded tail 3"}
	tests := map[string]struct {
		journal func(*testing.T) *Journal
		broken  int
	}{
		"with a journal": {
			journal: func(t *testing.T) *Journal { return testJournal(t, func(err error) { t.Error(err) }) },
			broken:  0,
		},
		"without one": {journal: func(*testing.T) *Journal { return &Journal{} }, broken: 0},
		"with one that never worked": {journal: func(t *testing.T) *Journal {
			return testJournal(t,
				func(error) {})
		}, broken: 1},
		"with one that broke in the middle": {journal: func(t *testing.T) *Journal {
			return testJournal(t,
				func(error) {})
		}, broken: 2},
		"with one that broke in the last moment": {journal: func(t *testing.T) *Journal {
			return testJournal(t,
				func(error) {})
		}, broken: 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			report, _ := reports(t, tt.journal(t), newTask("x"), tt.broken, goesOn, goesOn, won)
			if got := attemptsOf(report); !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
			if report["status"] != "SUCCEEDED" || report["interrupted"] != false || report["attempt_count"] != 3.0 {
				t.Errorf("got %v, want a task that has succeeded after 3 attempts", report)
			}
		})
	}
}

// A resumed task's report has the attempts of the earlier run too.
func TestReportOfAResume(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	tk := newTask("x")
	reports(t, g, tk, 0, goesOn, goesOn)
	testkit.Must(t, g.Journal.Release(tk.Number))
	adopted, err := g.Journal.Adopt(t.Context(), tk.Number)
	testkit.Must(t, err)
	report, _ := reports(t, g, adopted, 0, won)
	if got := attemptsOf(report); len(got) != 3 {
		t.Errorf("got %q, want 3 attempts", got)
	}
}

// However the run ends: an unfinished task is one to be resumed.
func TestReportOfAnUnfinishedTask(t *testing.T) {
	report, _ := reports(t, &Journal{}, newTask("x"), 0, task.Decision{Verdict: task.VerdictInterrupted})
	if report["status"] != "PENDING" || report["interrupted"] != true || len(attemptsOf(report)) != 1 {
		t.Errorf("got %v, want an interrupted task with one attempt", report)
	}
}

// A report that cannot be written is a warning: the task has ended, and how is told all the same.
func TestAReportThatFailsIsAWarning(t *testing.T) {
	told := newRecorder()
	dir := filepath.Join(t.TempDir(), "gone")
	testkit.Must(t, os.Mkdir(dir, 0o700))
	o, err := Reported(told, testHost(), filepath.Join(dir, "report.json"), &Journal{})
	testkit.Must(t, err)
	testkit.Must(t, os.Remove(dir))
	o.Ended(newTask("x"), task.Attempt{})
	o.Finished(newTask("x"), runner.Result{})
	if !slices.Equal(told.told, []string{"ended", "finished", "warned"}) || len(told.warnings) != 1 ||
		!strings.HasPrefix(told.warnings[0], "write the report: ") {
		t.Errorf("got told %q, warned %q, want the end, and then one warning", told.told, told.warnings)
	}
}

// A stream that leads to a file holds what others write too: the report goes where they write, and takes nothing's
// place.
func TestReportOnAStreamThatIsAFile(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	testkit.Must(t, err)
	defer func() { _ = log.Close() }()
	p := testHost()
	p.Stdout, p.Stderr = log, log
	for _, path := range []string{"-", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"} {
		_, _ = fmt.Fprintln(log, "before", path)
		o, err := Reported(newRecorder(), p, path, &Journal{})
		testkit.Must(t, err)
		o.Finished(newTask("x"), runner.Result{})
		_, _ = fmt.Fprintln(log, "after", path)
	}
	if got := testkit.Contents(t, log.Name()); strings.Count(got, "before ") != 5 || strings.Count(got, `"id": `) != 5 ||
		strings.Count(got, "after ") != 5 {
		t.Errorf("got\n%s\nwant 5 reports, each between its lines", got)
	}
}

// On stdout, which a reader may have left.
func TestReportOnStdout(t *testing.T) {
	read, stdout, err := os.Pipe()
	testkit.Must(t, err)
	p := testHost()
	p.Stdout = stdout
	told := newRecorder()
	o, err := Reported(told, p, "-", &Journal{})
	testkit.Must(t, err)
	o.Finished(newTask("x"), runner.Result{})
	_ = stdout.Close()
	var report map[string]any
	if err := json.NewDecoder(read).Decode(&report); err != nil || report["id"] == nil || len(told.warnings) > 0 {
		t.Errorf("got %v, %v, warned %q, want a report", report, err, told.warnings)
	}
	_ = read.Close()
	o.Finished(newTask("x"), runner.Result{})
	if len(told.warnings) != 1 {
		t.Errorf("got the warnings %q, want one of a closed stdout", told.warnings)
	}
}
