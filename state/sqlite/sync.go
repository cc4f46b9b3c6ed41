package sqlite

import (
	"context"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/task"
)

// syncsFirst reports whether a new task must survive a power loss before its first attempt starts: others rely on its name, or its request
// must not be sent twice.
func syncsFirst(t *task.Task) bool {
	return t.Name != "" || t.Once || t.Target != nil && !t.Target.Safe()
}

// syncBeside syncs a new task while its first attempt runs.
func (j *Journal) syncBeside(number int64) {
	s := &pendingSync{done: make(chan struct{})}
	j.syncs.Store(number, s)
	j.background.Go(func() {
		s.err = j.sync()
		close(s.done)
	})
}

// pendingSync is the sync of a new task; err is set when done is closed.
type pendingSync struct {
	done chan struct{}
	err  error
}

// awaitSync waits until a task that this process made is synced.
func (j *Journal) awaitSync(t *task.Task) error {
	s, ok := j.syncs.Load(t.Number)
	if !ok {
		return nil
	}
	<-s.(*pendingSync).done
	return j.diagnose(s.(*pendingSync).err)
}

// syncLog waits until the disk has what was committed. With synchronous=FULL, SQLite would wait while it holds the write lock; here others
// write meanwhile, and the file system makes one wait of many.
func (j *Journal) syncLog() error {
	step("transaction not synced")
	file, err := os.OpenFile(filepath.Join(j.dir, DatabaseName+walSuffix), os.O_RDWR, 0) // Windows syncs only what may be written
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return syncData(file)
}

// prepareEnd does while the command runs what its end would wait for: it compiles the statements, and copies a long log into the database.
// An error shows at the end, where it matters.
func (j *Journal) prepareEnd() {
	left := 0
	_ = j.conn.use(func() (err error) {
		for _, query := range []string{updateTask, setAttempt + isInFlight} {
			if _, err := j.conn.statement(query); err != nil {
				return err
			}
		}
		left, err = j.conn.shortenLog()
		return err
	})
	if left >= longLog {
		_ = j.shortenLogAlone()
	}
}

const (
	// walPages is the length from which the log is copied into the database. The first process that opens the journal after all others
	// have gone reads the log, a microsecond a page; a copy waits for the disk three or four times.
	walPages = 64
	// longLog is the length from which a log is copied while nobody writes. What others write meanwhile keeps the log from being begun anew;
	// from a thousand pages on SQLite would copy in every COMMIT.
	longLog = 4 * walPages
)

// shortenLog copies a long log into the database, and returns its length where others kept it from copying all.
func (c *conn) shortenLog() (left int, err error) {
	pages, copied, err := c.checkpoint("NOOP")
	if err != nil || pages-copied < walPages {
		return 0, err
	}
	if pages, copied, err = c.checkpoint("PASSIVE"); err != nil || pages == copied {
		return 0, err
	}
	return pages, nil
}

// shortenLogAlone copies the log while nobody writes.
func (j *Journal) shortenLogAlone() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTimeout)
	defer cancel()
	defer j.owners.Queue(ctx)()
	return j.conn.use(func() error {
		_, _, err := j.conn.checkpoint("PASSIVE")
		return err
	})
}

// checkpoint returns how many pages the log has, and how many of them are in the database.
func (c *conn) checkpoint(mode string) (pages, copied int, err error) {
	var busy int
	err = c.row("PRAGMA wal_checkpoint("+mode+")", nil, &busy, &pages, &copied)
	return pages, copied, err
}
