package sqlite

import (
	"context"
	"time"
)

// Inspection is what SQLite and the tables say of a journal, for `retry doctor`.
type Inspection struct {
	Schema  int    // version
	Mode    string // journal mode
	Damage  string // the first damage that SQLite's integrity check found; empty where it found none
	Orphans int    // rows that refer to a row that does not exist

	Future int       // tasks that were made in the future, as after the clock was set back
	Latest time.Time // when the last of them was made
}

// Inspect reads all pages of the database.
func (j *Journal) Inspect(ctx context.Context, now time.Time) (i Inspection, err error) {
	i.Schema = len(migrations)
	var latest integer
	const future = "SELECT count(*), coalesce(max(created_at), 0) FROM tasks WHERE created_at > ?"
	for _, q := range []struct {
		query string
		args  []any
		to    []any
	}{
		{"PRAGMA journal_mode", nil, []any{&i.Mode}},
		{"PRAGMA integrity_check(1)", nil, []any{&i.Damage}},
		{"SELECT count(*) FROM pragma_foreign_key_check", nil, []any{&i.Orphans}},
		{future, []any{now.UnixMicro()}, []any{&i.Future, &latest}},
	} {
		if err := j.row(ctx, q.query, q.args, q.to...); err != nil {
			return i, err
		}
		if i.Damage != "" && i.Damage != "ok" {
			return i, nil // the other answers could not be believed
		}
	}
	i.Damage, i.Latest = "", moment(latest)
	return i, nil
}
