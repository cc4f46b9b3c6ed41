package sqlite

import (
	"context"
	"fmt"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
)

// applicationID marks the file as ours: "rtry".
const applicationID = 0x72747279

// migrations lead from one user_version to the next; a released one is never edited, and none takes a table or a column
// away: an older retry that runs on would take the journal for damaged. Times are microseconds since 1970, durations
// microseconds. argv is a list of NUL-terminated strings, as arguments may hold any other byte.
var migrations = []string{
	`CREATE TABLE tasks (
		number          INTEGER PRIMARY KEY,
		id              TEXT NOT NULL UNIQUE,
		parent          TEXT,
		name            TEXT,
		kind            TEXT NOT NULL CHECK (kind IN ('command', 'http')),
		status          TEXT NOT NULL CHECK (status IN ('PENDING', 'IN_FLIGHT', 'SUCCEEDED', 'EXHAUSTED', 'FAILED', 'CANCELLED')),
		reason          TEXT,
		argv            BLOB NOT NULL,
		directory       BLOB NOT NULL,
		policy          TEXT NOT NULL,
		idempotency_key TEXT NOT NULL,
		attempt_count   INTEGER NOT NULL,
		created_at      INTEGER NOT NULL,
		finished_at     INTEGER,
		next_attempt_at INTEGER
	) STRICT;
	CREATE INDEX tasks_unfinished ON tasks (number) WHERE status IN ('PENDING', 'IN_FLIGHT');
	CREATE TABLE attempts (
		task       INTEGER NOT NULL REFERENCES tasks (number) ON DELETE CASCADE,
		number     INTEGER NOT NULL,
		started_at INTEGER NOT NULL,
		duration   INTEGER,
		exit       INTEGER,
		signal     TEXT,
		error      TEXT,
		message    TEXT,
		decision   TEXT,
		delay      INTEGER,
		shortened  INTEGER NOT NULL DEFAULT 0,
		PRIMARY KEY (task, number)
	) STRICT, WITHOUT ROWID;`,
	// The tails have a table of their own, so that the attempts stay small.
	`ALTER TABLE tasks ADD COLUMN options TEXT;
	ALTER TABLE attempts ADD COLUMN process TEXT;
	CREATE TABLE tails (
		task    INTEGER NOT NULL,
		attempt INTEGER NOT NULL,
		stdout  BLOB NOT NULL,
		stderr  BLOB NOT NULL,
		PRIMARY KEY (task, attempt),
		FOREIGN KEY (task, attempt) REFERENCES attempts (task, number) ON DELETE CASCADE
	) STRICT;`,
	// environment is stored like argv; requeued_after is the number of the last attempt before a requeue; a success
	// that is kept for --once is not pruned.
	`ALTER TABLE tasks ADD COLUMN environment BLOB;
	ALTER TABLE tasks ADD COLUMN once INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE tasks ADD COLUMN requeued_at INTEGER;
	ALTER TABLE tasks ADD COLUMN requeued_after INTEGER NOT NULL DEFAULT 0;
	CREATE INDEX tasks_name ON tasks (name) WHERE name IS NOT NULL;
	CREATE INDEX tasks_finished ON tasks (status, finished_at) WHERE finished_at IS NOT NULL AND NOT (once AND status = 'SUCCEEDED');`,
	// success and rule say how the decision judged the outcome: conditions may have read output that is not kept.
	`ALTER TABLE attempts ADD COLUMN success INTEGER;
	ALTER TABLE attempts ADD COLUMN rule INTEGER;
	CREATE TABLE policies (
		name       TEXT PRIMARY KEY,
		policy     TEXT NOT NULL,
		updated_at INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;`,
	// request and exchange are the JSON of what an HTTP task sends, and of what an attempt received.
	`ALTER TABLE tasks ADD COLUMN request TEXT;
	ALTER TABLE attempts ADD COLUMN exchange TEXT;`,
	// Any kind of task may be stored. The constraint is removed in the schema itself, as
	// https://sqlite.org/lang_altertable.html describes: copying a large table would take long.
	`PRAGMA writable_schema = ON;
	UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (kind IN (''command'', ''http''))', '') WHERE type = 'table' AND name = 'tasks';
	PRAGMA writable_schema = RESET;
	CREATE INDEX tasks_waiting ON tasks (next_attempt_at) WHERE status = 'PENDING';`,
	// Tasks that workers carry. queue is a task.Queue, host and partition are its lane, tags a list in JSON, payload a hash
	// of what came with an idempotency key. worker and nonce are those of the claim of an attempt in flight.
	`DROP INDEX tasks_waiting;
	ALTER TABLE tasks ADD COLUMN queue INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE tasks ADD COLUMN partition TEXT NOT NULL DEFAULT '';
	ALTER TABLE tasks ADD COLUMN host TEXT NOT NULL DEFAULT '';
	ALTER TABLE tasks ADD COLUMN tags TEXT;
	ALTER TABLE tasks ADD COLUMN payload TEXT;
	ALTER TABLE tasks ADD COLUMN blob TEXT;
	ALTER TABLE tasks ADD COLUMN worker INTEGER;
	ALTER TABLE tasks ADD COLUMN nonce INTEGER;
	ALTER TABLE attempts ADD COLUMN worker TEXT;
	CREATE INDEX tasks_due ON tasks (next_attempt_at, number, host, partition, queue) WHERE status = 'PENDING' AND queue > 0;
	CREATE INDEX tasks_worker ON tasks (worker) WHERE worker IS NOT NULL;
	CREATE UNIQUE INDEX tasks_key ON tasks (partition, idempotency_key) WHERE payload IS NOT NULL;
	CREATE INDEX tasks_blob ON tasks (blob) WHERE blob IS NOT NULL;
	CREATE TABLE workers (
		number      INTEGER PRIMARY KEY,
		name        TEXT NOT NULL,
		concurrency INTEGER NOT NULL,
		started_at  INTEGER NOT NULL,
		renewed_at  INTEGER NOT NULL,
		lost        INTEGER NOT NULL DEFAULT 0
	) STRICT;
	CREATE TABLE targets (host TEXT PRIMARY KEY, settings TEXT NOT NULL) STRICT, WITHOUT ROWID;
	CREATE TABLE operations (id TEXT PRIMARY KEY, status TEXT NOT NULL, operation TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
	// How many tasks of each status were pruned.
	`CREATE TABLE pruned (status TEXT PRIMARY KEY, tasks INTEGER NOT NULL) STRICT, WITHOUT ROWID;`,
	// With these, tasks are counted by their status without reading them: see selectCounts.
	`CREATE INDEX tasks_once ON tasks (number) WHERE once AND status = 'SUCCEEDED';
	CREATE INDEX tasks_own ON tasks (status) WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue = 0;`,
	// How many microseconds a worker may do without a renewal; 0 is not known.
	`ALTER TABLE workers ADD COLUMN visibility INTEGER NOT NULL DEFAULT 0;`,
	// What runs inside a task is found by its parent. A claim leaves the index of unfinished tasks as it is, since it
	// does not write finished_at. Tasks that wait for workers alone, of which there may be a million, are in no index of
	// a run's. The condition of tasks_ended is one that no other statement has: for those SQLite would take it for the
	// better index. For the list of statuses SQLite made a table in memory at each write of a row; task.Allowed knows
	// them, too.
	`CREATE INDEX tasks_parent ON tasks (parent, finished_at) WHERE parent IS NOT NULL;
	DROP INDEX tasks_unfinished;
	CREATE INDEX tasks_unfinished ON tasks (number) WHERE finished_at IS NULL;
	CREATE INDEX tasks_ended ON tasks (number) WHERE finished_at > 0;
	CREATE INDEX tasks_named ON tasks (name) WHERE name IS NOT NULL AND finished_at IS NULL;
	DROP INDEX tasks_own;
	CREATE INDEX tasks_own ON tasks (status, queue) WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue <> 1;
	PRAGMA writable_schema = ON;
	UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (status IN (''PENDING'', ''IN_FLIGHT'', ''SUCCEEDED'', ''EXHAUSTED'', ''FAILED'', ''CANCELLED''))', '')
		WHERE type = 'table' AND name = 'tasks';
	PRAGMA writable_schema = RESET;`,
	// What differs in most requests, beside what many have in common: see task.Apart.
	`ALTER TABLE tasks ADD COLUMN url TEXT;
	ALTER TABLE tasks ADD COLUMN body BLOB;`,
}

// openDatabase opens the database for writing, and migrates it. It waits while another process opens a new file or
// closes it as the last one.
func openDatabase(ctx context.Context, path string) (c *conn.Conn, err error) {
	err = conn.RetryBusy(ctx, func() error {
		if c, err = conn.Open(dataSource(path)); err != nil {
			return err
		}
		if err = migrate(c, path+walSuffix); err != nil {
			c.KeepWAL()
			_ = c.Close()
		}
		return err
	})
	return c, err
}

// migrate brings the schema up to date, all steps in one transaction. It refuses the journal of a newer retry and the
// file of another program, and does not change them.
func migrate(c *conn.Conn, wal string) error {
	file, err := identify(c)
	if err != nil {
		return err
	}
	// The mode is written into the file, and so is set only after the file is known to be a journal. SQLite answers with
	// the mode that holds, and without an error where it could not set another.
	var mode string
	err = c.Row("PRAGMA journal_mode = WAL", nil, &mode)
	if err == nil && mode != "wal" && wal != "" {
		err = fmt.Errorf("SQLite can keep no WAL here (journal mode %s)", mode)
	}
	if err != nil || file.version == len(migrations) {
		return err
	}
	conn.Step("mode set")
	return c.Transaction(context.Background(), func(c *conn.Conn) error {
		file, err := identify(c) // again: another process may have migrated the file since
		if err != nil {
			return err
		}
		if file == (identity{}) && holdsTasks(wal) {
			return errUnreadWAL
		}
		for _, migration := range migrations[file.version:] {
			if _, err := c.Exec(migration); err != nil {
				return fmt.Errorf("migrate the journal: %w", err)
			}
		}
		conn.Step("schema migrated")
		_, err = c.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(migrations)))
		return err
	})
}

// identity is what a file says of itself.
type identity struct {
	application, version, tables int
}

// identify reads everything in one statement, as another process may be migrating. It accepts an empty file, and a
// journal that this retry can read or migrate.
func identify(c *conn.Conn) (i identity, err error) {
	const query = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`
	err = c.Row(query, nil, &i.application, &i.version, &i.tables)
	switch {
	case err != nil || i == identity{}:
		return i, err
	case i.application != applicationID || i.version < 1:
		return i, state.NewFault(state.ErrForeign, "use another directory with --state",
			"%s is a database of another program", DatabaseName)
	case i.version > len(migrations):
		return i, state.NewFault(state.ErrNewer, "upgrade retry, or use another directory with --state",
			"the journal was written by a newer retry (schema %d, this one knows %d)", i.version, len(migrations))
	}
	return i, nil
}
