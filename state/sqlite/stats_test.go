package sqlite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// showStats writes a command's figures so that two can be told apart by eye.
func showStats(s task.CommandStats) string {
	return fmt.Sprintf("%q %q: %d runs, %d first, %d rescued, %d failed, %d cancelled, %d unfinished; %d ended, p50 %s p95 %s, waited %s",
		s.Name, s.Command, s.Runs, s.FirstTry, s.Rescues, s.Failures, s.Cancelled, s.Unfinished, s.Ended, s.P50, s.P95, s.Waiting)
}

func checkStats(t *testing.T, j *Journal, since time.Time, want ...string) {
	t.Helper()
	all, _, err := j.Stats(t.Context(), since, 0)
	must(t, err)
	var got []string
	for _, s := range all {
		got = append(got, showStats(s))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// running returns a change that gives a task a name and a command line.
func running(name string, argv ...string) func(*task.Task) {
	return func(t *task.Task) { t.Name, t.Command = name, argv }
}

func TestStats(t *testing.T) {
	j := open(t)
	checkStats(t, j, time.Time{})
	after := epoch.Add
	ended(t, j, succeeded, 1, after(time.Second), running("", "a"))
	ended(t, j, succeeded, 3, after(3*time.Second), running("", "a"))
	ended(t, j, cancelled, 1, after(time.Hour), running("", "a")) // its duration says nothing
	ended(t, j, failed, 1, after(time.Second), running("", "a", "b"))
	ended(t, j, exhausted, 2, after(-time.Second), running("", "a", "b")) // the clock was set back
	ended(t, j, succeeded, 2, after(time.Minute), running("", ""))
	ended(t, j, failed, 1, after(2*time.Second), running("nightly", "old"))
	must(t, j.Release(waiting(t, j).Number)) // of false
	named := newTask()
	named.Name, named.Command = "nightly", []string{"new", "\xff"}
	must(t, claimed(j, named, epoch))

	checkStats(t, j, time.Time{},
		`"" ["a" "b"]: 2 runs, 0 first, 0 rescued, 2 failed, 0 cancelled, 0 unfinished; 2 ended, p50 0s p95 1s, waited 0s`,
		`"nightly" ["new" "\xff"]: 2 runs, 0 first, 0 rescued, 1 failed, 0 cancelled, 1 unfinished; 1 ended, p50 2s p95 2s, waited 0s`,
		`"" ["a"]: 3 runs, 1 first, 1 rescued, 0 failed, 1 cancelled, 0 unfinished; 2 ended, p50 1s p95 3s, waited 0s`,
		`"" [""]: 1 runs, 0 first, 1 rescued, 0 failed, 0 cancelled, 0 unfinished; 1 ended, p50 1m0s p95 1m0s, waited 0s`,
		`"" ["false"]: 1 runs, 0 first, 0 rescued, 0 failed, 0 cancelled, 1 unfinished; 0 ended, p50 0s p95 0s, waited 0s`,
	)
	checkStats(t, j, epoch.Add(time.Second))
}

// A name and a command line that look the same are two things.
func TestStatsTellNamesFromCommands(t *testing.T) {
	j := open(t)
	ended(t, j, succeeded, 1, epoch, running("x", "y"))
	ended(t, j, succeeded, 1, epoch, running("", "x"))
	all, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	if len(all) != 2 {
		t.Errorf("got %+v", all)
	}
}

// The wait after the last attempt is not over, or was cut short: only what lies between two attempts counts.
func TestStatsSumTheWaitsBetweenAttempts(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, claimed(j, tk, epoch))
	var want time.Duration
	for _, delay := range []time.Duration{time.Second, time.Minute, time.Hour} {
		must(t, recorded(j, tk, exit(1), retryIn(delay), epoch))
		for _, got := range waits(t, j) {
			if got != want {
				t.Errorf("waiting: %s, want %s", got, want)
			}
		}
		must(t, claimed(j, tk, epoch))
		want += delay
		for _, got := range waits(t, j) {
			if got != want {
				t.Errorf("in the next attempt: %s, want %s", got, want)
			}
		}
	}
	must(t, recorded(j, tk, exit(1), retryIn(time.Hour), epoch))
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	for _, got := range waits(t, j) {
		if got != want {
			t.Errorf("cancelled: %s, want %s", got, want)
		}
	}
}

// waits are what the two say who sum the delays up.
func waits(t *testing.T, j *Journal) []time.Duration {
	t.Helper()
	stats, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	figures, err := j.Figures(t.Context())
	must(t, err)
	return []time.Duration{stats[0].Waiting, figures.Waiting}
}

// A task that was requeued began anew.
func TestStatsOfARequeuedTask(t *testing.T) {
	j := open(t)
	tk := ended(t, j, succeeded, 1, epoch.Add(time.Hour), nil)
	_, err := rawExec(j, "UPDATE tasks SET requeued_at = ? WHERE number = ?", epoch.Add(50*time.Minute).UnixMicro(), tk.Number)
	must(t, err)
	all, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	if all[0].P50 != 10*time.Minute {
		t.Errorf("it took %s", all[0].P50)
	}
}

// rank is greater for what comes first.
func rank(s task.CommandStats) int {
	n := s.Failures*100 + s.Runs
	if s.Last.Broken() {
		n += 10_000
	}
	return n
}

// Whatever is in the journal, each run is counted once.
func TestStatsAgainstAModel(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		_, err := rawExec(j, "DELETE FROM tasks")
		must(t, err)
		want := map[string]*task.CommandStats{}
		for range rapid.IntRange(0, 10).Draw(t, "tasks") {
			argv := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", ""}), 1, 2).Draw(t, "argv")
			d := rapid.SampledFrom([]task.Decision{succeeded, failed, exhausted, cancelled, retryIn(0)}).Draw(t, "decision")
			n := rapid.IntRange(1, 3).Draw(t, "attempts")
			tk := ended(t, j, d, n, epoch, running("", argv...))
			s := want[fmt.Sprintf("%q", argv)]
			if s == nil {
				s = &task.CommandStats{}
				want[fmt.Sprintf("%q", argv)] = s
			}
			count := map[task.Status]*int{
				task.Succeeded: &s.FirstTry, task.Failed: &s.Failures, task.Exhausted: &s.Failures, task.Cancelled: &s.Cancelled,
				task.Pending: &s.Unfinished,
			}[tk.Status]
			if tk.Status == task.Succeeded && n > 1 {
				count = &s.Rescues
			}
			*count++
			s.Runs++
			if tk.Status.Finished() && tk.Status != task.Cancelled {
				s.Last.Status = tk.Status // all end at the same time
			}
		}
		all, _, err := j.Stats(t.Context(), time.Time{}, 0)
		must(t, err)
		for i, s := range all {
			w := want[fmt.Sprintf("%q", s.Command)]
			if w == nil || s.Runs != w.Runs || s.FirstTry != w.FirstTry || s.Rescues != w.Rescues || s.Failures != w.Failures ||
				s.Cancelled != w.Cancelled || s.Unfinished != w.Unfinished || s.Ended != s.FirstTry+s.Rescues+s.Failures {
				t.Fatalf("got %s, want %+v", showStats(s), w)
			}
			if i > 0 && rank(s) > rank(all[i-1]) {
				t.Fatalf("%s\nstands after %s", showStats(s), showStats(all[i-1]))
			}
			if s.Last.Status != w.Last.Status {
				t.Fatalf("%s ended last as %q, want %q", showStats(s), s.Last.Status, w.Last.Status)
			}
		}
		if len(all) != len(want) {
			t.Fatalf("%d commands, want %d", len(all), len(want))
		}
	})
}

// requesting returns a change that makes a task one of HTTP.
func requesting(name, method, url string) func(*task.Task) {
	return func(t *task.Task) {
		t.Kind, t.Name, t.Command, t.Target = request.Kind, name, nil, &request.Request{Method: method, URL: url}
	}
}

// Requests go together by their method and URL; a query or a password is another one each time perhaps.
func TestStatsOfRequests(t *testing.T) {
	j := open(t)
	for _, change := range []func(*task.Task){
		requesting("", "GET", "https://h/a?page=1"), requesting("", "GET", "https://h/a?page=2#x"), requesting("", "GET", "https://h/a#y"),
		requesting("", "POST", "https://h/a"), requesting("", "PUT", "https://u:old@h/a"), requesting("", "PUT", "https://u:new@h/a"), requesting("", "GET", "https://h/b"), requesting("GET https://h/a", "PUT", "https://h/c?d"),
		running("", "GET", "https://h/a"), running("", "GET https://h/a"),
	} {
		ended(t, j, succeeded, 1, epoch, change)
	}
	all, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	got := map[string]int{}
	for _, s := range all {
		got[fmt.Sprintf("%q %q %s %s", s.Name, s.Command, s.Endpoint.Method, s.Endpoint.URL)] = s.Runs
	}
	want := map[string]int{
		`"" [] GET https://h/a`: 3, `"" [] POST https://h/a`: 1, `"" [] PUT https://u:***@h/a`: 2, `"" [] GET https://h/b`: 1, `"GET https://h/a" [] PUT https://h/c`: 1,
		`"" ["GET" "https://h/a"]  `: 1, `"" ["GET https://h/a"]  `: 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// What the last attempt was answered is known, too; requests that cannot be read go together.
func TestStatsOfDamagedRequests(t *testing.T) {
	j := open(t)
	tk := sending(requests()["least"])
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, refused(503), failed, epoch))
	list, _, err := j.Stats(t.Context(), time.Time{}, 0)
	must(t, err)
	if o := list[0].Last.Outcome; o.Reply == nil || o.Reply.Status != 503 {
		t.Errorf("the last outcome is %+v", o)
	}
	for _, text := range []string{"{", "[]", "{}", "7", `{"method":{},"url":[]}`} {
		spoil(t, j, tk, "request = '"+text+"'")
		list, n, err := j.Stats(t.Context(), time.Time{}, 0)
		must(t, err)
		if n != 1 || list[0].Failures != 1 {
			t.Errorf("%s: %+v", text, list)
		}
	}
}

// minutes is a time so long after the epoch.
func minutes(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// showLast writes the ends in minutes.
func showLast(l task.LastRuns) string {
	minute := func(at time.Time) int { return int(at.Sub(epoch.Truncate(time.Microsecond)).Minutes()) }
	text := "never"
	if l.Status != "" {
		text = fmt.Sprintf("%s at %d, exit %d", l.Status, minute(l.FinishedAt), l.Outcome.Exit)
	}
	if !l.SucceededAt.IsZero() {
		text += fmt.Sprintf(", success at %d", minute(l.SucceededAt))
	}
	return text
}

func TestStatsKnowTheLastRuns(t *testing.T) {
	tests := map[string]struct {
		tasks func(j *Journal)
		want  string
	}{
		"mended": {func(j *Journal) {
			ended(t, j, failed, 1, minutes(1), nil)
			ended(t, j, succeeded, 2, minutes(2), nil)
		}, "SUCCEEDED at 2, exit 1, success at 2"}, // ended tells every attempt to exit 1
		"broken": {func(j *Journal) {
			ended(t, j, succeeded, 1, minutes(1), nil)
			ended(t, j, exhausted, 3, minutes(3), nil)
			ended(t, j, cancelled, 1, minutes(4), nil)
		}, "EXHAUSTED at 3, exit 1, success at 1"},
		"made later, ended earlier": {func(j *Journal) {
			ended(t, j, failed, 1, minutes(9), nil)
			ended(t, j, succeeded, 1, minutes(5), nil)
		}, "FAILED at 9, exit 1, success at 5"},
		"two at the same time": {func(j *Journal) {
			ended(t, j, succeeded, 1, minutes(1), nil)
			ended(t, j, failed, 1, minutes(1), nil)
		}, "FAILED at 1, exit 1, success at 1"},
		"the last attempt counts": {func(j *Journal) {
			tk := waiting(t, j)
			must(t, claimed(j, tk, epoch))
			must(t, recorded(j, tk, exit(75), failed, minutes(2)))
			must(t, j.Release(tk.Number))
		}, "FAILED at 2, exit 75"},
		"interrupted": {func(j *Journal) { must(t, j.Release(inFlight(t, j).Number)) }, "never"},
		"cancelled":   {func(j *Journal) { ended(t, j, cancelled, 1, minutes(4), nil) }, "never"},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			j := open(t)
			test.tasks(j)
			list, _, err := j.Stats(t.Context(), time.Time{}, 0)
			must(t, err)
			if got := showLast(list[0].Last); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// What is broken now comes first, and no more is looked at than asked for.
func TestStatsBeginWithWhatIsBroken(t *testing.T) {
	j := open(t)
	for i := range 3 {
		ended(t, j, failed, 1, minutes(i), running("", "mended"))
	}
	ended(t, j, succeeded, 1, minutes(9), running("", "mended"))
	ended(t, j, failed, 1, minutes(1), running("", "broken"))
	for range 2 {
		ended(t, j, exhausted, 1, minutes(1), running("", "more broken"))
	}
	ended(t, j, succeeded, 1, minutes(1), running("", "sound"))
	order := []string{"more broken", "broken", "mended", "sound"}
	for limit := range 6 {
		list, all, err := j.Stats(t.Context(), time.Time{}, limit)
		must(t, err)
		var got []string
		for _, s := range list {
			got = append(got, strings.Join(s.Command, " "))
		}
		want := order
		if limit > 0 {
			want = order[:min(limit, len(order))]
		}
		if !slices.Equal(got, want) || all != len(order) {
			t.Errorf("limit %d: %q of %d, want %q", limit, got, all, want)
		}
	}
}

// The last attempts of a few tasks are found in a journal of a million.
func TestLastAttemptsAreFoundByTheirKey(t *testing.T) {
	for _, step := range planOf(t, open(t), selectLast, "[1]") {
		if strings.HasPrefix(step, "SCAN") && !strings.HasPrefix(step, "SCAN n ") {
			t.Error(step)
		}
	}
}

func figures(t *testing.T, j *Journal) task.JournalFigures {
	t.Helper()
	f, err := j.Figures(t.Context())
	must(t, err)
	return f
}

func TestFiguresOfAnEmptyJournal(t *testing.T) {
	f := figures(t, open(t))
	if len(f.Tasks) != 6 || f.Attempts+f.Interrupted != 0 || !f.OldestUnfinished.IsZero() || f.Waiting != 0 || len(f.Names) > 0 {
		t.Errorf("got %+v", f)
	}
	if f.DatabaseBytes == 0 {
		t.Error("the file has no size")
	}
}

// A journal that does not exist yet is nowhere, not in the working directory.
func TestFiguresOfNoJournal(t *testing.T) {
	t.Chdir(closedJournal(t))
	j, err := OpenEmpty()
	must(t, err)
	defer func() { must(t, j.Close()) }()
	if f := figures(t, j); f.DatabaseBytes != 0 || len(f.Tasks) != 6 {
		t.Errorf("got %+v", f)
	}
}

func TestFiguresCount(t *testing.T) {
	j := open(t)
	for i, d := range []task.Decision{succeeded, failed, failed, exhausted, exhausted, exhausted, cancelled} {
		ended(t, j, d, i+1, epoch, nil)
	}
	for hours := range 3 {
		tk := newTask()
		tk.CreatedAt = epoch.Add(-time.Duration(hours) * time.Hour)
		must(t, claimed(j, tk, epoch))
		must(t, j.Release(tk.Number))
	}
	must(t, j.Release(waiting(t, j).Number))
	f := figures(t, j)
	want := map[task.Status]int{
		task.Succeeded: 1, task.Failed: 2, task.Exhausted: 3, task.Cancelled: 1, task.InFlight: 3, task.Pending: 1,
	}
	if fmt.Sprint(f.Tasks) != fmt.Sprint(want) || f.Attempts != 28+4 || f.Interrupted != 4 {
		t.Errorf("got %+v", f)
	}
	if showTime(f.OldestUnfinished) != showTime(epoch.Add(-2*time.Hour)) {
		t.Errorf("the oldest unfinished one was made at %s", f.OldestUnfinished)
	}
	if f.WALBytes == 0 {
		t.Error("the log has no size")
	}
}

// Of each name the last run that ended of itself, whatever came in which order; a cancelled one says nothing of the command.
func TestFiguresOfNames(t *testing.T) {
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	tests := map[string]struct {
		tasks func(j *Journal, name func(*task.Task))
		want  string
	}{
		"a success": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, failed, 1, at(1), name)
			ended(t, j, succeeded, 2, at(2), name)
		}, "succeeded at 2 after 2m0s, 2 attempts; success at 2"},
		"a failure": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, succeeded, 2, at(1), name)
			ended(t, j, exhausted, 3, at(3), name)
			ended(t, j, cancelled, 1, at(4), name)
		}, "failed at 3 after 3m0s, 3 attempts; success at 1"},
		"made later, ended earlier": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, failed, 1, at(9), name)
			ended(t, j, succeeded, 1, at(5), name)
		}, "failed at 9 after 9m0s, 1 attempts; success at 5"},
		"never ended": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, cancelled, 1, at(4), name)
		}, "never"},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			j := open(t)
			ended(t, j, succeeded, 1, at(99), nil) // without a name
			ended(t, j, succeeded, 1, at(99), running("other", "x"))
			test.tasks(j, running("nightly", "x"))
			f := figures(t, j)
			if len(f.Names) != 2 || f.Names[0].Name != "nightly" || f.Names[1].Name != "other" {
				t.Fatalf("got %+v", f.Names)
			}
			if got := showName(f.Names[0]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func showName(n task.NameFigures) string {
	if n.FinishedAt.IsZero() {
		return "never"
	}
	minute := func(at time.Time) int { return int(at.Sub(epoch.Truncate(time.Microsecond)).Minutes()) }
	verdict := map[bool]string{true: "succeeded", false: "failed"}[n.Succeeded]
	return fmt.Sprintf("%s at %d after %s, %d attempts; success at %d", verdict, minute(n.FinishedAt), n.Duration, n.Attempts, minute(n.LastSuccess))
}

// A million tasks without a name cost nothing here.
func TestNamesAreFoundByTheirIndex(t *testing.T) {
	for _, step := range planOf(t, open(t), selectNames) {
		if strings.HasPrefix(step, "SCAN") && step != "SCAN n" { // n are the names
			t.Error(step)
		}
	}
}
