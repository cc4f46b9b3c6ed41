package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// fillQueue writes tasks as a service may have them: 70 % wait, 25 % have succeeded, 5 % are dead letters, and 200 are
// in flight. They go to 50 hosts, with three policies and two partitions.
func fillQueue(t tester, q *Queue, tasks int, now time.Time) {
	t.Helper()
	policy, err := task.DefaultPolicy().MarshalJSON()
	must(t, err)
	_, err = rawExec(q.Journal, fmt.Sprintf(`BEGIN IMMEDIATE;
		INSERT INTO workers (number, name, concurrency, started_at, renewed_at) VALUES (901,
			'a', 64, 0, 0), (902, 'b', 64, 0, 0);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d)
		INSERT INTO tasks (number, id, kind, status, reason, argv, request, directory, policy, idempotency_key, attempt_count,
				created_at, finished_at, next_attempt_at, queue, partition, host, tags, payload, worker, nonce)
			SELECT i, format('%%08x-0000-7000-8000-%%012x', i, i), 'http',
				CASE WHEN i <= 200 THEN 'IN_FLIGHT' WHEN i %% 100 < 70 THEN 'PENDING' WHEN i %% 100 < 95 THEN 'SUCCEEDED'
					WHEN i %% 2 THEN 'EXHAUSTED' ELSE 'FAILED' END,
				NULL, x'', json_object('method', 'POST', 'url', format('http://host%%d.example.org/hook', i %% 50),
					'header', json_array('Content-Type: application/json'),
					'body', json_array(json_object('text', printf('%%.*c', 256, 'x')))),
				x'2F746D70', replace('%[2]s', '"name":"default"', format('"name":"policy%%d"', i %% 3)), format('key-%%d', i),
				i <= 200 OR i %% 100 >= 70, %[3]d - (%[1]d - i) * 1000,
				iif(i > 200 AND i %% 100 >= 70, %[3]d - (i * 7919) %% 1000000000, NULL),
				iif(i > 200 AND i %% 100 < 70, %[3]d + (i * 7919) %% 100000000000, NULL), 1, iif(i %% 2, '', 'tenant'),
				format('host%%d.example.org', i %% 50), iif(i %% 10, NULL, '["red"]'), 'hash', iif(i <= 200, 901 + i %% 2, NULL),
				iif(i <= 200, i, NULL)
			FROM n;
		INSERT INTO attempts (task, number, started_at, duration, exit, decision, exchange)
			SELECT number, 1, created_at, iif(status = 'IN_FLIGHT', NULL, 1000), iif(status = 'IN_FLIGHT', NULL, 22),
				CASE status WHEN 'IN_FLIGHT' THEN NULL WHEN 'SUCCEEDED' THEN 'succeeded' ELSE 'exhausted' END,
				iif(status = 'IN_FLIGHT', NULL, '{"status":' || iif(status = 'SUCCEEDED', 204, 500 + number %% 4) || '}')
			FROM tasks WHERE attempt_count > 0;
		COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`, tasks, policy, now.UnixMicro()))
	must(t, err)
}

// BenchmarkQueueOfAMillion measures what workers and pages read, with 1,000,000 tasks.
func BenchmarkQueueOfAMillion(b *testing.B) {
	q, ctx, now := openQueue(b), context.Background(), time.Now()
	fillQueue(b, q, 1_000_000, now)
	lane := &state.Lane{Partition: "tenant", Host: "host2.example.org"}
	tenant := "tenant"
	for _, read := range []struct {
		name string
		do   func() error
	}{
		{"Dead", func() error { _, err := q.Dead(ctx, now, time.Minute); return err }},
		{"Waiting", func() error {
			_, err := q.Waiting(ctx, state.Position{Due: now.Add(time.Hour)}, now.Add(48*time.Hour), nil, 2000)
			return err
		}},
		{"WaitingInALane", func() error {
			_, err := q.Waiting(ctx, state.Position{}, now.Add(48*time.Hour), lane,
				1000)
			return err
		}},
		{"WaitingInNoLane", func() error {
			_, err := q.Waiting(ctx, state.Position{}, now.Add(48*time.Hour), &state.Lane{Host: "x"}, 1000)
			return err
		}},
		{"Unfinished", func() error { _, err := q.Unfinished(ctx, now); return err }},
		{"Counts", func() error { _, err := q.Counts(ctx, now); return err }},
		{"CountUnfinished", func() error { _, err := q.CountUnfinished(ctx); return err }},
		{"Page", func() error { _, err := q.Page(ctx, state.PageFilter{Limit: 50}); return err }},
		{"PageOfATenant", func() error {
			_, err := q.Page(ctx, state.PageFilter{Limit: 50,
				Partition: &tenant})
			return err
		}},
		{"PageOfNoPolicy", func() error { _, err := q.Page(ctx, state.PageFilter{Limit: 50, PolicyID: "none"}); return err }},
		{"PageOfNoTag", func() error { _, err := q.Page(ctx, state.PageFilter{Limit: 50, Tag: "none"}); return err }},
		{"PageOfNoError", func() error { _, err := q.Page(ctx, state.PageFilter{Limit: 50, Error: "none"}); return err }},
		{"Groups", func() error { _, err := q.Groups(ctx, state.PageFilter{}, 50); return err }},
		{"GroupsOfAHost", func() error {
			_, err := q.Groups(ctx, state.PageFilter{Host: "host45.example.org"}, 50)
			return err
		}},
	} {
		b.Run(read.name, func(b *testing.B) {
			for b.Loop() {
				must(b, read.do())
			}
		})
	}
}

// What is asked often reads no task that it does not return: SQLite says SCAN where it would go through all of them,
// and COVERING where it does not read the tasks themselves.
func TestQueueQueriesUseIndexes(t *testing.T) {
	q := openQueue(t)
	fillQueue(t, q, 2000, time.Now())
	groups, groupArgs := selectGroups(state.PageFilter{}, 50)
	lane := " AND host = ? AND partition = ?"
	pageOf := func(statuses ...task.Status) string {
		where, _ := narrowed(statuses)
		return selectTasks + wherePage + where + pageOrder
	}
	for _, test := range []struct {
		name, query string
		args        []any
		want        []string // in the plan
		not         []string
	}{
		{"Dead", selectWorkers, nil, []string{"USING COVERING INDEX tasks_worker (worker=?)"}, []string{"SCAN tasks"}},
		{"TakeOver", selectHeld + " LIMIT ?", []any{1, 1}, []string{"USING INDEX tasks_worker (worker=?)"}, []string{"SCAN"}},
		{"Waiting", selectItems + waitingOrder, []any{1, 1, 2, 3}, []string{"COVERING INDEX tasks_due (next_attempt_at>"},
			[]string{"SCAN", "TEMP B-TREE"}},
		{"a lane", selectItems + lane + waitingOrder, []any{1, 1, 2, "a", "b", 3},
			[]string{"COVERING INDEX tasks_due (next_attempt_at>"}, []string{"SCAN", "TEMP B-TREE"}},
		{"Page", selectTasks + wherePage + pageOrder, []any{9, 1, 50},
			[]string{"SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
			[]string{"SCAN t", "TEMP B-TREE"}},
		{"Page of what runs", pageOf(task.InFlight), []any{9, 1, 50},
			[]string{"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", "COVERING INDEX tasks_worker"},
			[]string{"SCAN", "TEMP B-TREE"}},
		{"Page of what waits", pageOf(task.Pending, task.InFlight), []any{9, 1, 50},
			[]string{"SEARCH t USING INDEX tasks_unfinished (number>? AND number<?)"}, []string{"SCAN t", "TEMP B-TREE"}},
		{"Page of what ended", pageOf(task.Failed, task.Cancelled), []any{9, 1, 50},
			[]string{"SEARCH t USING INDEX tasks_ended (number>? AND number<?)"}, []string{"SCAN t", "TEMP B-TREE"}},
		{"the due ones", selectDue, []any{1}, []string{"COVERING INDEX tasks_due (next_attempt_at<?)"}, []string{"SCAN"}},
		{"Counts", selectCounts, nil, []string{"tasks_finished", "INDEX tasks_once", "tasks_worker",
			"COVERING INDEX tasks_due",
			"tasks_own"}, []string{"SCAN tasks$", "TEMP B-TREE"}},
		{"attempts", selectAttempts, nil, []string{"MERGE (INTERSECT)", "SCAN tasks USING INDEX tasks_unfinished",
			"SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH t USING INDEX tasks_finished (status=? AND finished_at>?)"},
			[]string{"SCAN t ", "SCAN t$"}},
		{"unfinished ones", selectUnfinished, nil, []string{"SCAN tasks USING INDEX tasks_unfinished"}, nil},
		{"owned ones", selectOwned, nil, []string{"COVERING INDEX tasks_own", "COVERING INDEX tasks_worker", "tasks_named"},
			[]string{"SCAN", "TEMP B-TREE"}},
		{"dead letters", selectDead, nil, []string{"INDEX tasks_finished (status=?"}, []string{"SCAN"}},
		{"Groups", groups, groupArgs, []string{"INDEX tasks_finished (status=? AND finished_at>?)",
			"INDEX tasks_finished (status=? AND finished_at=?)", "SEARCH attempts USING PRIMARY KEY (task=? AND number=?)"},
			[]string{"SCAN t"}},
		{"Find", findID, []any{"id"}, []string{"sqlite_autoindex_tasks_1 (id=?)"}, []string{"SCAN"}},
		{"a key", selectKey, []any{"", "key"}, []string{"INDEX tasks_key (partition=? AND idempotency_key=?)"},
			[]string{"SCAN"}},
		{"BlobInUse", selectBlob, []any{"hash"}, []string{"COVERING INDEX tasks_blob (blob=?)"}, []string{"SCAN tasks"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := strings.Join(planOf(t, q.Journal, test.query, test.args...), "$\n") + "$"
			for _, want := range test.want {
				if !strings.Contains(plan, want) {
					t.Errorf("got the plan\n%s\nwant %q in it", plan, want)
				}
			}
			for _, not := range test.not {
				if strings.Contains(plan, not) {
					t.Errorf("got the plan\n%s\nwant no %q in it", plan, not)
				}
			}
		})
	}
}

// The sums of many requests decode each endpoint once, whatever their bodies are, and look for no owner of what waits
// in the queue.
func TestStatsDecodeOneRequestOfAGroup(t *testing.T) {
	q := openQueue(t)
	fillQueue(t, q, 2000, time.Now())
	_, err := rawExec(q.Journal, "UPDATE tasks SET request = json_set(request, '$.body[0].text', 'body' || number)")
	must(t, err)
	known := endpoints{}
	sums, err := q.tally(t.Context(), time.Time{}, known)
	must(t, err)
	if len(known) != 50 || len(sums) != 50 {
		t.Errorf("got %d requests decoded and %d groups, want 50 of each: one for each host", len(known), len(sums))
	}
	for key, g := range sums {
		if len(g.open) > 0 {
			t.Errorf("%q: got %d tasks of the queue whose owners are looked for, want none", key, len(g.open))
		}
	}
}

// What is in the queue without a worker is left out by Begun.
func TestBegunTasks(t *testing.T) {
	q := openQueue(t)
	fillQueue(t, q, 1000, time.Now())
	_, err := rawExec(q.Journal, "UPDATE tasks SET queue = 2 WHERE number = 301; UPDATE tasks SET queue = 0 WHERE number = 302")
	must(t, err)
	tasks, err := storetest.List(q.Journal, state.Filter{Begun: true, Statuses: []task.Status{task.Pending, task.InFlight}})
	must(t, err)
	if len(tasks) != 202 || tasks[0].Number != 302 {
		t.Errorf("got %d tasks, the newest %d; want 200 in flight, 302 and 301", len(tasks), tasks[0].Number)
	}
}

// A task that cannot be read hides no other.
func TestADamagedTaskHidesNoOther(t *testing.T) {
	q := openQueue(t)
	fillQueue(t, q, 1000, time.Now())
	_, err := rawExec(q.Journal, `UPDATE tasks SET policy = '{', tags = '[', request = '{' WHERE number IN (297, 298);
		UPDATE attempts SET exchange = '{' WHERE task IN (297, 298)`)
	must(t, err)
	for _, f := range []state.PageFilter{{}, {PolicyID: "policy1"}, {Tag: "red"}, {Error: "status 503"}} {
		if page, err := q.Page(t.Context(), f); err != nil || len(page.Tasks) == 0 {
			t.Errorf("%+v: got %d tasks, %v; want some", f, len(page.Tasks), err)
		}
		if groups, err := q.Groups(t.Context(), f, 50); err != nil || len(groups) == 0 && f.Tag == "" {
			t.Errorf("%+v: got %d groups, %v; want some", f, len(groups), err)
		}
	}
	if counts, err := q.Counts(t.Context(), time.Now()); err != nil || counts.Dead[""] != 2 {
		t.Errorf("got %+v, %v; want 2 dead letters without a policy", counts, err)
	}
}

// A page looks at so many rows and no more, and says where to go on. How many steps it takes depends on the machine.
func TestAPageLooksAtSomeRows(t *testing.T) {
	q := openQueue(t)
	const all = 40*pageRows + 1000
	fillQueue(t, q, all, time.Now())
	_, err := rawExec(q.Journal, "UPDATE tasks SET host = 'rare' WHERE number IN (7, 8, ?)", all-1)
	must(t, err)
	f, found := state.PageFilter{Host: "rare", Limit: 2}, []int64{}
	for {
		page, err := q.Page(t.Context(), f)
		must(t, err)
		for _, tk := range page.Tasks {
			found = append(found, tk.Number)
		}
		if page.Next == 0 {
			break
		}
		if steps := all - page.Next + 1; steps%pageRows != 0 && page.Next != 8 || f.Cursor > 0 && page.Next >= f.Cursor {
			t.Fatalf("got the cursor %d after %d, want the end of a step", page.Next, f.Cursor)
		}
		f.Cursor = page.Next
	}
	if want := []int64{all - 1, 8, 7}; !slices.Equal(found, want) {
		t.Errorf("got the tasks %v, want %v", found, want)
	}
}
