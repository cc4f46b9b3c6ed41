package state

// walPages is the length from which the log is copied back into the database. Whoever opens the journal after all have gone reads the
// log, a microsecond a page; a copy waits for the disk three or four times.
const walPages = 64

// getReady does while the command runs what its end would wait for. An error shows there, where it matters.
func (j *Journal) getReady() {
	_ = j.line.use(j.db, func(l *line) error {
		for _, query := range []string{updateTask, updateAttempt + isInFlight} {
			if _, err := l.statement(query); err != nil {
				return err
			}
		}
		return l.copyBack()
	})
}

// copyBack copies a long log back into the database. Nobody waits for that, as one would for what SQLite does by itself in a COMMIT:
// that comes only from a thousand pages on.
func (l *line) copyBack() error {
	var busy, pages, copied integer
	if err := l.scan("PRAGMA wal_checkpoint(NOOP)", nil, &busy, &pages, &copied); err != nil || pages.Int64-copied.Int64 < walPages {
		return err
	}
	return l.scan("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &copied)
}
