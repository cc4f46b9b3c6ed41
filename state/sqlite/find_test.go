package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestFind(t *testing.T) {
	const (
		a  = "0190aaaa-1111-7000-8000-00000000beef"
		b  = "0190aaaa-2222-7000-8000-0000000face1"
		c  = "0190bbbb-3333-7000-8000-0000000face2"
		d1 = "0190cccc-4444-7000-8000-000000000d01"
		d3 = "0190cccc-4444-7000-8000-000000000e01"
		d2 = "0190cccc-4444-7000-8000-000000000d02"
		p  = "face1-4444-7000-8000-0000000ca-face1" // one end like the other
		e  = "0190eeee-5555-7000-8000-00000000eeee"
	)
	named := []struct{ id, name string }{
		{a, "deploy"}, {b, "100%"}, {c, "a_b"}, {d1, "nightly"}, {d3, ""}, {d2, "nightly"}, {p, "0190b"}, {e, "Grüße\n"}, // the order of making
		{"0190ffff-6666-7000-8000-0000000000ff", a},
	}
	tests := []struct{ name, ref, want string }{
		{"an id", b, b},
		{"an id in capitals", strings.ToUpper(c), c},
		{"an id goes before a name", a, a},
		{"a beginning", "0190aaaa-2", b},
		{"a beginning of one", "f", ""},
		{"a beginning in capitals", "0190BBBB-3", c},
		{"an end, as tables show it", "0000beef", a},
		{"an end in capitals", "BEEF", a},
		{"an end of one character", "2", ""},
		{"several of a beginning", "0190aaaa", ""},
		{"several of an end", "01", ""},
		{"an end that none has", "d0", "not found"},
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
	tasks, err := j.List(t.Context(), f)
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

// Who takes the tasks slowly keeps nobody: the journal has one connection, and the WAL is reset only while nobody reads.
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
		{"the runs of a name", newest(state.Filter{Name: "x"}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
		{"of some statuses", newest(state.Filter{Name: "x", Statuses: []task.Status{task.Pending, task.Failed}}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
		{"made since", newest(state.Filter{Name: "x", Since: epoch}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
		{"unfinished ones", newest(state.Filter{Name: "x", Statuses: []task.Status{task.Pending}}), "SEARCH t USING INDEX tasks_name (name=? AND rowid<?)"},
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
