package sqlite

import (
	"fmt"
	"maps"
	"slices"
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
