package sqlite

import (
	"context"
)

// walPages is the length from which the log is copied back into the database. Whoever opens the journal after all have gone reads the
// log, a microsecond a page; a copy waits for the disk three or four times.
const walPages = 64

// longLog is the length from which a log that others make longer while it is copied is copied while nobody writes: the next one to write
// begins it anew then. From a thousand pages on SQLite would copy in every COMMIT.
const longLog = 4 * walPages

// getReady does while the command runs what its end would wait for. An error shows there, where it matters.
func (j *Journal) getReady() {
	left := int64(0)
	_ = j.line.use(j.db, func(l *line) (err error) {
		for _, query := range []string{updateTask, updateAttempt + isInFlight} {
			if _, err := l.statement(query); err != nil {
				return err
			}
		}
		left, err = l.copyBack()
		return err
	})
	if left >= longLog {
		_ = j.copyAlone()
	}
}

// copyAlone copies the log while nobody writes.
func (j *Journal) copyAlone() error {
	ctx, cancel := Limit(context.Background(), busyTimeout)
	defer cancel()
	defer j.owners.Queue(ctx)()
	return j.line.use(j.db, func(l *line) error { return l.checkpoint("PASSIVE", new(integer), new(integer)) })
}

// copyBack copies a long log back into the database, and returns its length where that was more than others let it copy. Nobody waits
// for it, as one would for what SQLite does by itself in a COMMIT: that comes only from a thousand pages on.
func (l *line) copyBack() (left int64, err error) {
	var pages, copied integer
	if err := l.checkpoint("NOOP", &pages, &copied); err != nil || pages.Int64-copied.Int64 < walPages {
		return 0, err
	}
	if err := l.checkpoint("PASSIVE", &pages, &copied); err != nil || pages.Int64 == copied.Int64 {
		return 0, err
	}
	return pages.Int64, nil
}

func (l *line) checkpoint(mode string, pages, copied *integer) error {
	return l.scan("PRAGMA wal_checkpoint("+mode+")", nil, new(integer), pages, copied)
}
