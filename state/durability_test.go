package state

import (
	"database/sql"
	"errors"
	"testing"
)

// The values of PRAGMA synchronous.
const (
	syncNormal = 1
	syncFull   = 2
)

func synchronous(t *testing.T, q querier) (level int) {
	t.Helper()
	must(t, q.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level))
	return level
}

// watchCommits has the connection note, at each such write, whether its commit will wait for the disk.
func watchCommits(t *testing.T, j *Journal, event string) (levels func() []int) {
	t.Helper()
	_, err := j.db.Exec(`CREATE TEMP TABLE seen (level);
		CREATE TEMP TRIGGER watch AFTER ` + event + ` BEGIN INSERT INTO seen SELECT synchronous FROM pragma_synchronous; END`)
	must(t, err)
	return func() (levels []int) {
		rows, err := j.db.Query("SELECT level FROM seen")
		must(t, err)
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var level int
			must(t, rows.Scan(&level))
			levels = append(levels, level)
		}
		must(t, rows.Err())
		return levels
	}
}

// A task survives power loss, so its first commit waits for the disk; the others would only be slowed by that.
func TestOnlyTheFirstClaimWaitsForTheDisk(t *testing.T) {
	j := open(t)
	levels := watchCommits(t, j, "INSERT ON attempts")
	task := waiting(t, j)
	apply(t, j, task, claiming(), recording(succeeded))
	inFlight(t, j)
	if got := levels(); len(got) != 3 || got[0] != syncFull || got[1] != syncNormal || got[2] != syncFull {
		t.Errorf("the levels of two tasks' claims are %v", got)
	}
	if level := synchronous(t, j.db); level != syncNormal {
		t.Errorf("left at %d", level)
	}
}

func TestAFailedFirstClaimLeavesTheConnectionAsItWas(t *testing.T) {
	j := open(t)
	failure := errors.New("no")
	err := j.writeDurably(t.Context(), func(tx *sql.Tx) error {
		if level := synchronous(t, tx); level != syncFull {
			t.Errorf("level %d within", level)
		}
		return failure
	})
	if level := synchronous(t, j.db); level != syncNormal || !errors.Is(err, failure) {
		t.Errorf("left at %d, error %v", level, err)
	}
}

// A transaction holds the write lock from its beginning. One that took it later would fail where it has to wait.
func TestTransactionsBeginImmediate(t *testing.T) {
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	_, err := other.db.Exec("PRAGMA busy_timeout = 0")
	must(t, err)
	must(t, j.write(t.Context(), func(*sql.Tx) error {
		second, err := other.db.Begin()
		if err == nil {
			must(t, second.Rollback())
		}
		if !isBusy(err) {
			t.Errorf("a second one began: %v", err)
		}
		return nil
	}))
	must(t, other.write(t.Context(), func(*sql.Tx) error { return nil }))
}
