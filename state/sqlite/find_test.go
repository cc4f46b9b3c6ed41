package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

func TestFind(t *testing.T) {
	const (
		a  = "0190aaaa-1111-7000-8000-00000000beef"
		b  = "0190aaaa-2222-7000-8000-0000000face1"
		c  = "0190bbbb-3333-7000-8000-0000000face2"
		d1 = "0190cccc-4444-7000-8000-00000000ad01"
		d3 = "0190cccc-4444-7000-8000-00000001ad01"
		d2 = "0190cccc-4444-7000-8000-000000000d02"
		p  = "face1-4444-7000-8000-0000000ca-face1" // one end like the other
		e  = "0190eeee-5555-7000-8000-00000000eeee"
		n  = "0190dddd-6666-7000-8000-00abcd123456"
	)
	named := []struct{ id, name string }{
		{a, "deploy"}, {b, "100%"}, {c, "a_b"}, {d1, "nightly"}, {d3, ""}, {d2, "nightly"}, {p, "0190b"}, {e, "Grüße\n"}, // the order of making
		{"0190ffff-6666-7000-8000-0000000000ff", a}, {n, ""},
	}
	tests := []struct{ name, ref, want string }{
		{"an id", b, b},
		{"an id in capitals", strings.ToUpper(c), c},
		{"an id goes before a name", a, a},
		{"a beginning", "0190aaaa-2", b},
		{"a beginning of one character", "f", "not found"},
		{"a beginning in capitals", "0190BBBB-3", c},
		{"an end, as tables show it", "0000beef", a},
		{"an end in capitals", "BEEF", a},
		{"an end of three characters", "eef", "not found"},
		{"an end that may be the number of a name", "123456", "not found"},
		{"an end, digits for the most part", "d123456", n},
		{"several of a beginning", "0190aaaa", ""},
		{"several of an end", "ad01", ""},
		{"an end that none has", "d0d0", "not found"},
		{"a beginning of one task and an end of another", "face1", ""},
		{"a middle", "1111", "not found"},
		{"longer than an id", a + "0", "not found"},
		{"longer than an id, in front", "0" + a, "not found"},
		{"a name", "deploy", a},
		{"a name in capitals is another", "DEPLOY", "not found"},
		{"a part of a name", "depl", "not found"},
		{"the newest of a name", "nightly", d2},
		{"a name goes before a beginning", "0190b", p},
		{"a name beyond ASCII", "Grüße\n", e},
		{"a name with a wildcard", "100%", b},
		{"a name with another", "a_b", c},
		{"a pattern of LIKE", "0190aaaa-1%", "not found"},
		{"every task of LIKE", "%", "not found"},
		{"any character of LIKE", "0190aaaa_1111-7000-8000-00000000beef", "not found"},
		{"any name of LIKE", "a%b", "not found"},
		{"a pattern of GLOB", "*", "not found"},
		{"any character of GLOB", "?", "not found"},
		{"a set of GLOB", "0190aaaa-[1]", "not found"},
		{"nothing", "", "not found"},
		{"a space", " ", "not found"},
		{"a quote", "' OR 1=1 --", "not found"},
		{"invalid UTF-8", "\xff", "not found"},
		{"NUL", "\x00", "not found"},
		{"a beginning, then NUL", "0190bbbb\x00", "not found"},
	}
	j := open(t)
	for _, n := range named {
		tk := newTask()
		tk.ID, tk.Name = n.id, n.name
		must(t, claimed(j, tk, epoch))
		must(t, recorded(j, tk, exit(0), succeeded, epoch)) // of the unfinished ones only one may have a name
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := j.Find(t.Context(), test.ref)
			switch {
			case test.want == "not found":
				if !errors.Is(err, state.ErrNotFound) || !strings.Contains(err.Error(), "hint: retry status") {
					t.Errorf("got %v, %v", got, err)
				}
			case test.want == "":
				if err == nil || errors.Is(err, state.ErrNotFound) || !strings.Contains(err.Error(), "stands for several tasks") {
					t.Errorf("got %v, %v", got, err)
				}
			case err != nil:
				t.Error(err)
			case got.ID != test.want:
				t.Errorf("found %s", got.ID)
			}
		})
	}
}

// The ids are not read for what can be a name alone.
func TestIsPart(t *testing.T) {
	for ref, want := range map[string]bool{
		"beef": true, "BEEF": true, "0190bbbb-3333-7": true, "12345678": true, "bee": false, "1234567": false,
		"backup": false, "deadbeef.": false, "0190bbbb-3333_7": false, "nightly-backup": false, "dead beef": false,
	} {
		if got := isPart(ref); got != want {
			t.Errorf("%q: got %v, want %v", ref, got, want)
		}
	}
}

// The message is enough to go on with; it does not grow with the journal.
func TestFindNamesTheTasksThatAReferenceStandsFor(t *testing.T) {
	j := open(t)
	first, second := inFlight(t, j), inFlight(t, j)
	_, err := j.Find(t.Context(), first.ID[:8])
	if err == nil || !strings.Contains(err.Error(), "hint: give more of one of "+second.ID+", "+first.ID) {
		t.Errorf("got %v", err)
	}
	for range 20 {
		inFlight(t, j)
	}
	if _, err = j.Find(t.Context(), first.ID[:8]); err == nil || len(err.Error()) > 500 {
		t.Errorf("got %v", err)
	}
}

// madeAt stores a task that was made at a time, with the id that it would have had then.
func madeAt(t *testing.T, j *Journal, at time.Time) *task.Task {
	t.Helper()
	tk := newTask()
	tk.ID, tk.CreatedAt = fmt.Sprintf("%s-7000-8000-%012x", earliestID(at), rand.Uint32()), at
	must(t, claimed(j, tk, at))
	return tk
}

func listed(t *testing.T, j *Journal, f state.Filter) (numbers []int64) {
	t.Helper()
	tasks, err := storetest.List(j, f)
	must(t, err)
	for _, tk := range tasks {
		numbers = append(numbers, tk.Number)
	}
	return numbers
}

func TestListFilters(t *testing.T) {
	j := open(t)
	for n := range 6 { // 1 to 6, a minute from each to the next
		tk := madeAt(t, j, epoch.Add(time.Duration(n)*time.Minute))
		if n%3 == 2 {
			_, err := rawExec(j, "UPDATE tasks SET name = 'nightly' WHERE number = ?", tk.Number)
			must(t, err)
		}
		switch n % 3 {
		case 1:
			must(t, recorded(j, tk, exit(0), succeeded, epoch))
		case 2:
			must(t, recorded(j, tk, exit(1), retryIn(time.Minute), epoch))
		}
	}
	minute := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }
	statuses := func(s ...task.Status) []task.Status { return s }
	tests := []struct {
		name   string
		filter state.Filter
		want   []int64
	}{
		{"all", state.Filter{}, []int64{6, 5, 4, 3, 2, 1}},
		{"a status", state.Filter{Statuses: statuses(task.Succeeded)}, []int64{5, 2}},
		{"several", state.Filter{Statuses: statuses(task.Pending, task.Succeeded)}, []int64{6, 5, 3, 2}},
		{"unfinished", state.Filter{Statuses: statuses(task.Pending, task.InFlight)}, []int64{6, 4, 3, 1}},
		{"none of them", state.Filter{Statuses: statuses(task.Failed)}, nil},
		{"since", state.Filter{Since: minute(3)}, []int64{6, 5, 4}},
		{"a moment later", state.Filter{Since: minute(3).Add(time.Microsecond)}, []int64{6, 5}},
		{"since before 1970", state.Filter{Since: time.Unix(-99, 0)}, []int64{6, 5, 4, 3, 2, 1}},
		{"since later", state.Filter{Since: minute(9)}, nil},
		{"a name", state.Filter{Name: "nightly"}, []int64{6, 3}},
		{"of a name since", state.Filter{Name: "nightly", Since: minute(3)}, []int64{6}},
		{"until", state.Filter{Until: minute(3)}, []int64{4, 3, 2, 1}},
		{"until before all", state.Filter{Until: minute(-1)}, nil},
		{"between two times", state.Filter{Since: minute(1), Until: minute(3)}, []int64{4, 3, 2}},
		{"until, of a status", state.Filter{Until: minute(3), Statuses: statuses(task.Pending)}, []int64{3}},
		{"a beginning of a name", state.Filter{Name: "night"}, nil},
		{"all at once", state.Filter{Since: minute(1), Statuses: statuses(task.InFlight, task.Pending), Limit: 2}, []int64{6, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := listed(t, j, tt.filter); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Those that have failed are the same, and in the same order, whether a page of them is asked for or all.
func TestListOfTheFailed(t *testing.T) {
	j := open(t)
	for n, d := range []task.Decision{failed, succeeded, exhausted, cancelled, failed, retryIn(time.Hour)} {
		must(t, recorded(j, madeAt(t, j, epoch.Add(time.Duration(n)*time.Minute)), exit(1), d, epoch.AddDate(0, 0, -1)))
	}
	for _, since := range []time.Time{{}, epoch.Add(2 * time.Minute)} {
		for _, limit := range []int{0, 2, pageSize} {
			f := state.Filter{Statuses: []task.Status{task.Failed, task.Exhausted}, Since: since, Limit: limit}
			want := []int64{5, 3}
			if since.IsZero() && limit != 2 {
				want = []int64{5, 3, 1}
			}
			if got := listed(t, j, f); !slices.Equal(got, want) {
				t.Errorf("since %v, limit %d: got %v, want %v", since, limit, got, want)
			}
		}
	}
}

// addFinished makes n finished tasks in one transaction, a second from each to the next.
func addFinished(t *testing.T, j *Journal, n int) {
	t.Helper()
	madeAt(t, j, epoch)
	const query = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO tasks (id, kind, status, argv, directory, policy, idempotency_key, attempt_count, created_at)
		SELECT printf('%08x-%04x-7', ms >> 16, ms & 65535), kind, 'SUCCEEDED', argv, directory, policy, '', 0, ms * 1000 + 999
		FROM (SELECT t.*, t.created_at / 1000 + 1000 * i AS ms FROM tasks t, n)`
	_, err := rawExec(j, query, n)
	must(t, err)
}

// Page by page, in either order, each task comes once; and not one too many is read.
func TestAllPages(t *testing.T) {
	const many = 2*pageSize + 3
	j := open(t)
	addFinished(t, j, many-1)
	var newest []int64
	for n := int64(many); n > 0; n-- {
		newest = append(newest, n)
	}
	for _, since := range []time.Time{{}, epoch} {
		for _, limit := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1, 2 * pageSize, many - 1, many, many + 1} {
			want := newest
			if limit > 0 {
				want = newest[:min(limit, many)]
			}
			if got := listed(t, j, state.Filter{Since: since, Limit: limit}); !slices.Equal(got, want) {
				t.Errorf("since %v, limit %d: %d tasks: %v", since, limit, len(got), got)
			}
		}
	}
}

// Who takes the tasks slowly keeps nobody: the journal has one connection, and the WAL is reset only while nobody
// reads.
func TestAllLetsOthersIn(t *testing.T) {
	j := open(t)
	addFinished(t, j, pageSize)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // who is not let in waits for ever
	defer cancel()
	for _, err := range j.All(t.Context(), state.Filter{}) {
		must(t, err)
		var busy, frames, moved int
		must(t, j.row(ctx, "PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &frames, &moved))
		if busy != 0 {
			t.Fatal("a checkpoint finds a reader")
		}
	}
}

// What a person asks for takes no time in a journal of any size: none of these reads the whole table.
func TestQueriesUseAnIndex(t *testing.T) {
	j := open(t)
	newest := func(f state.Filter) []string {
		query, args := listQuery(f, newTask(), 1)
		return planOf(t, j, query, args...)
	}
	runs, runArgs := runsSince(epoch)
	tests := []struct {
		name string
		plan []string
		want string
	}{
		{"an id", planOf(t, j, findID, "x"), "SEARCH t USING INDEX sqlite_autoindex_tasks_1 (id=?)"},
		{"a name", planOf(t, j, findName, "x"), "SEARCH t USING INDEX tasks_name (name=?)"},
		{"a beginning", planOf(t, j, findPart, "x", 6), "SEARCH tasks USING COVERING INDEX sqlite_autoindex_tasks_1 (id>? AND id<?)"},
		{"an end", planOf(t, j, findPart, "x", 6), "SCAN tasks USING COVERING INDEX sqlite_autoindex_tasks_1"},
		{"the newest", newest(state.Filter{}), "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)"},
		{"unfinished", newest(state.Filter{Statuses: []task.Status{task.Pending}}), "SEARCH t USING INDEX tasks_unfinished (number<?)"},
		{"finished", newest(state.Filter{Statuses: []task.Status{task.Succeeded, task.Failed}}), "SEARCH t USING INDEX tasks_ended (number<?)"},
		{"running", newest(state.Filter{Statuses: []task.Status{task.InFlight}, Begun: true}),
			"SEARCH tasks USING COVERING INDEX tasks_worker (worker>?)"},
		{"interrupted", newest(state.Filter{Statuses: []task.Status{task.Pending, task.InFlight}, Begun: true}),
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		{"the failed ones", newest(state.Filter{Statuses: []task.Status{task.Failed, task.Exhausted},
			Since: epoch, Limit: 21}),
			"SEARCH tasks USING INDEX tasks_finished (status=? AND finished_at>?)"},
		{"running since", newest(state.Filter{Statuses: []task.Status{task.InFlight}, Begun: true, Since: epoch}),
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
		{"the runs of a name", newest(state.Filter{Name: "x"}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
		{"of some statuses", newest(state.Filter{Name: "x", Statuses: []task.Status{task.Pending, task.Failed}}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
		{"made since", newest(state.Filter{Name: "x", Since: epoch}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
		{"unfinished ones", newest(state.Filter{Name: "x", Statuses: []task.Status{task.Pending}}), "SEARCH t USING INDEX tasks_named (name=? AND rowid<?)"},
		{"until", planOf(t, j, selectAfter, "x"), "SEARCH tasks USING COVERING INDEX sqlite_autoindex_tasks_1 (id<?)"},
		{"stats since", planOf(t, j, runs, runArgs...), "SEARCH t USING INDEX sqlite_autoindex_tasks_1 (id>?)"},
		{"since", newest(state.Filter{Since: epoch}), "SEARCH t USING INDEX sqlite_autoindex_tasks_1 (id>? AND id<?)"},
	}
	for _, tt := range tests {
		if !slices.Contains(tt.plan, tt.want) || slices.Contains(tt.plan, "USE TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s: got the plan %q, want one with %q", tt.name, tt.plan, tt.want)
		}
	}
}

func TestOutput(t *testing.T) {
	j := open(t)
	tk, other := inFlight(t, j), inFlight(t, j)
	write := func(stdout, stderr string) {
		must(t, recorded(j, tk, task.Outcome{Exit: 1, Stdout: stdout, Stderr: stderr}, retryIn(time.Second), epoch))
		must(t, claimed(j, tk, epoch))
	}
	write("", "")
	write("out\xff\x00\n", "")
	write("same", "same")
	write("", "")
	tests := []struct {
		name    string
		task    *task.Task
		attempt int
		want    state.Output
	}{
		{"the latest that has any", tk, 0, state.Output{Attempt: 3, Stdout: "same", Stderr: "same"}},
		{"one of them", tk, 2, state.Output{Attempt: 2, Stdout: "out\xff\x00\n", Stderr: ""}},
		{"one that wrote nothing", tk, 4, state.Output{}},
		{"one that runs", tk, 5, state.Output{}},
		{"one that there is not", tk, 9, state.Output{}},
		{"of a task that wrote nothing", other, 0, state.Output{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := j.Output(t.Context(), tt.task.Number, tt.attempt)
			if got != tt.want || (tt.want.Attempt == 0) != errors.Is(err, state.ErrNoOutput) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// All tails of a task together may be large: what does not ask for them is spared them.
func TestHistoryHasNoTails(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	must(t, recorded(j, tk, task.Outcome{Stdout: "x"}, succeeded, epoch))
	history, err := j.History(t.Context(), tk.Number)
	must(t, err)
	if len(history) != 1 || history[0].Outcome.Stdout != "" {
		t.Errorf("got %+v", history)
	}
}

// fullPolicy returns a policy with something in every field.
func fullPolicy(t *testing.T, name, curve, jitter string) task.Policy {
	t.Helper()
	p := task.DefaultPolicy()
	var err error
	p.Name = name
	p.Backoff, err = backoff.Parse(curve, jitter)
	must(t, err)
	p.Attempts, p.Timeout, p.Budget, p.ResetAfter, p.Consecutive = 8, time.Second, time.Hour, time.Minute, 2
	p.StopOn, err = task.ParseConditions([]string{"2", "SIGSEGV"})
	must(t, err)
	rule, err := task.ParseRule("75", "constant:500ms", "30%")
	must(t, err)
	p.Rules = []task.Rule{rule}
	return p
}

func TestPolicies(t *testing.T) {
	j := open(t)
	if p, err := j.Policy(t.Context(), "deploy"); p != nil || err != nil {
		t.Fatalf("%v, %v out of nothing", p, err)
	}
	deploy := fullPolicy(t, "deploy", "exp:2s..2m", "full")
	must(t, j.SetPolicy(t.Context(), deploy, epoch))
	must(t, j.SetPolicy(t.Context(), fullPolicy(t, "a 'name'\n", "fib:1s", ""), epoch))
	got, err := j.Policy(t.Context(), "deploy")
	must(t, err)
	if asJSON(t, got.Policy) != asJSON(t, deploy) || got.Damage != nil || got.UpdatedAt != epoch.Truncate(time.Microsecond).Local() {
		t.Errorf("got %s of %v, %v", asJSON(t, got.Policy), got.UpdatedAt, got.Damage)
	}
	all, err := j.Policies(t.Context())
	must(t, err)
	if len(all) != 2 || all[0].Name != "a 'name'\n" || all[1].Name != "deploy" {
		t.Errorf("%+v", all)
	}
	must(t, j.RemovePolicy(t.Context(), "deploy"))
	if err := j.RemovePolicy(t.Context(), "deploy"); !errors.Is(err, state.ErrNoPolicy) {
		t.Errorf("removed twice: %v", err)
	}
	if p, err := j.Policy(t.Context(), "deploy"); p != nil || err != nil {
		t.Errorf("%v, %v after its removal", p, err)
	}
}

// Nothing of the policy that had the name before is left.
func TestSetPolicyReplacesWhole(t *testing.T) {
	j := open(t)
	must(t, j.SetPolicy(t.Context(), fullPolicy(t, "deploy", "exp:2s..2m", "full"), epoch))
	plain := task.DefaultPolicy()
	plain.Name = "deploy"
	must(t, j.SetPolicy(t.Context(), plain, epoch.Add(time.Hour)))
	got, err := j.Policy(t.Context(), "deploy")
	must(t, err)
	if asJSON(t, got.Policy) != asJSON(t, plain) || !got.UpdatedAt.Equal(epoch.Add(time.Hour).Truncate(time.Microsecond)) {
		t.Errorf("got %s of %v", asJSON(t, got.Policy), got.UpdatedAt)
	}
}

// A jitter that was asked for stays, one that the curve brought along gives way: in the journal as on the command line.
func TestAStoredJitterIsChosenOrNot(t *testing.T) {
	j := open(t)
	for _, tt := range []struct{ jitter, with, want string }{{"", "buckets:3", "none"}, {"phase", "buckets:3", "none"}, {"full", "linear:1s", "full"}, {"full", "buckets:3", ""}} {
		must(t, j.SetPolicy(t.Context(), fullPolicy(t, "x", "exp:1s", tt.jitter), epoch))
		got, err := j.Policy(t.Context(), "x")
		must(t, err)
		spec, err := got.Backoff.With(tt.with, "")
		if (err != nil) != (tt.want == "") || err == nil && spec.Jitter() != tt.want {
			t.Errorf("%q, then %s: %v, %v", tt.jitter, tt.with, spec, err)
		}
	}
}

// One row that cannot be read hides no other, and is named.
func TestADamagedPolicy(t *testing.T) {
	j := open(t)
	must(t, j.SetPolicy(t.Context(), fullPolicy(t, "sound", "exp:1s", ""), epoch))
	bad := []string{``, `{`, `[]`, `{"backoff":"nope"}`, `{"attempts":-1,"backoff":"exp:1s"}`, `{"attempts":"many"}`}
	for i, text := range bad {
		_, err := rawExec(j, "INSERT INTO policies VALUES (?, ?, ?)", fmt.Sprint("bad", i), text, int64(-1)<<63)
		must(t, err)
	}
	all, err := j.Policies(t.Context())
	must(t, err)
	if len(all) != len(bad)+1 || all[len(bad)].Damage != nil {
		t.Fatalf("%+v", all)
	}
	for i, p := range all[:len(bad)] {
		if p.Name != fmt.Sprint("bad", i) || p.Damage == nil || !strings.HasPrefix(p.Damage.Error(), "policy: ") || strings.Contains(p.Damage.Error(), "\n") {
			t.Errorf("%s: %v", bad[i], p.Damage)
		}
	}
}

// The journal of an older retry can be asked for policies, and stays as it is.
func TestPoliciesOfAnOlderJournal(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
	execute(t, dir, strings.Join(migrations[:3], ";")+fmt.Sprintf(";PRAGMA journal_mode = WAL; PRAGMA application_id = %d; PRAGMA user_version = 3;", applicationID))
	before := contents(t, dir)
	j := readerOf(t, dir)
	if all, err := j.Policies(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if !slices.Equal(contents(t, dir), before) {
		t.Error("the journal was changed")
	}
	must(t, openIn(t, dir).SetPolicy(t.Context(), fullPolicy(t, "x", "exp:1s", ""), epoch))
	if p, err := readerOf(t, dir).Policy(t.Context(), "x"); err != nil || p == nil {
		t.Errorf("%v, %v", p, err)
	}
}

func readerOf(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenReader(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

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
	for _, step := range planOf(t, open(t), selectLast, 1) {
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

// Of each name the last run that ended of itself, whatever came in which order; a cancelled one says nothing of the
// command.
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
