package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

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

// syncLog waits until the disk has what was committed. With synchronous=FULL, SQLite would wait while it holds the
// write lock; here others write meanwhile, and the file system makes one wait of many.
func (j *Journal) syncLog() error {
	step("transaction not synced")
	file, err := os.OpenFile(filepath.Join(j.dir, DatabaseName+walSuffix), os.O_RDWR, 0) // Windows syncs only what may be written
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return syncData(file)
}

// prepareEnd does while the command runs what its end would wait for: it compiles the statements, and copies a long log
// into the database. An error shows at the end, where it matters.
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
	// walPages is the length from which the log is copied into the database. The first process that opens the journal
	// after all others have gone reads the log, a microsecond a page; a copy waits for the disk three or four times.
	walPages = 64
	// longLog is the length from which a log is copied while nobody writes. What others write meanwhile keeps the log
	// from being begun anew; from a thousand pages on SQLite would copy in every COMMIT.
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

const (
	reserveName = "reserve"
	reserveSize = 256 << 10 // bytes
	lastReserve = 64 << 10  // what the end of a task takes, which is a few pages
)

// keepReserve makes a file that takes up room, so that the end of a task can be written though the disk is full.
// Without that, what has succeeded would run again in a resume. A disk that has no room for it now is none of the
// task's concern.
func (j *Journal) keepReserve() {
	if err := j.reserve(reserveSize); err != nil && !errors.Is(err, fs.ErrExist) { // mostly it is there
		_ = j.reserve(lastReserve)
	}
}

func (j *Journal) reserve(size int64) error {
	path := filepath.Join(j.dir, reserveName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, size)) // a file system that packs zeros gives less room back, which is no loss
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// spareReserve gives up what the end of a task does not need of the reserve.
func (j *Journal) spareReserve() {
	path := filepath.Join(j.dir, reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() > lastReserve {
		_ = os.Truncate(path, lastReserve)
	}
}

// writeEnd is write for what ends an attempt. Where it ends the task, on a full disk, it gives the reserve up and tries
// once more: between two attempts the next one would only fill that, too, and leave nothing for the end.
func (j *Journal) writeEnd(ctx context.Context, t *task.Task, do func(*conn) error) error {
	err := j.write(ctx, do)
	if errors.Is(err, state.ErrFull) && t.Status.Finished() && os.Remove(filepath.Join(j.dir, reserveName)) == nil {
		err = j.write(ctx, do)
	}
	return err
}

// makeRoom copies the log back where that can grow no longer, so that the next write begins it anew in the room that it
// has, and keeps it short from then on: the database needs some of the reserve to grow, and the log is not to take the
// rest. It reports false where nothing is gained: all was copied before, or others still read the log.
func (j *Journal) makeRoom() (made bool) {
	_ = j.conn.use(func() error {
		c := j.conn
		pages, copied, err := c.checkpoint("NOOP")
		if err != nil || pages == copied {
			return err
		}
		j.spareReserve()
		if pages, copied, err = c.checkpoint("PASSIVE"); err != nil {
			return err
		}
		made = pages == copied
		_, err = c.exec(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", walPages))
		return err
	})
	return made
}

// enoughRoom is what the file system of a journal has to have left for more than the journal itself.
const enoughRoom = 16 << 20 // bytes

// HasRoom reports whether inputs and outputs can be kept beside the journal.
func (j *Journal) HasRoom() bool {
	system, err := lock.Statfs(j.dir)
	return err == nil && system.Free >= enoughRoom
}

const (
	walSuffix   = "-wal"
	shmSuffix   = "-shm"
	asidePrefix = "corrupt-"
	asideTime   = "20060102T150405Z"
)

// asideOrder is in which order a damaged journal leaves. The database goes first and its WAL last: should we die in
// between, a WAL without a database is damage to whoever opens the journal next, while a database without its WAL would
// look sound and lack what was acknowledged. The locks and the inputs go along, since the numbers of tasks begin anew.
var asideOrder = []string{DatabaseName, DatabaseName + shmSuffix, lock.OwnersFile, inputsName, DatabaseName + walSuffix}

// SetAside moves the journal that damage, an ErrCorrupt, complains of into a directory beside it, and returns that. It
// returns "" where another process has done so before. Those that have the old files open go on with them there, and
// harm nothing.
func SetAside(ctx context.Context, damage error) (aside string, err error) {
	var f *state.Fault
	if !errors.As(damage, &f) || !errors.Is(f.Kind, state.ErrCorrupt) || f.Dir == "" {
		return "", damage
	}
	unlock, err := lock.Exclusive(ctx, f.Dir)
	if err != nil {
		return "", fmt.Errorf("set the damaged journal aside: %w", diagnose(f.Dir, err))
	}
	defer unlock()
	if current, err := statDatabase(f.Dir); err != nil || !sameFile(current, f.File) {
		return "", err
	}
	aside, err = moveAside(f.Dir, time.Now())
	if err != nil {
		err = fmt.Errorf("set the damaged journal aside: %w", diagnose(f.Dir, err))
	}
	return aside, err
}

func moveAside(dir string, now time.Time) (aside string, err error) {
	if aside, err = makeAside(dir, now); err != nil {
		return "", err
	}
	for _, name := range asideOrder {
		step("about to set aside")
		err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	return aside, errors.Join(lock.SyncDir(aside), lock.SyncDir(dir))
}

// makeAside makes a directory of a name that is free.
func makeAside(dir string, now time.Time) (string, error) {
	name := filepath.Join(dir, asidePrefix+now.UTC().Format(asideTime))
	for n := 1; ; n++ {
		path := name
		if n > 1 {
			path = fmt.Sprintf("%s-%d", name, n)
		}
		if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// Asides lists the journals that were set aside, oldest first.
func Asides(dir string) (found []string) {
	entries, _ := os.ReadDir(dir) // sorted, and the names begin with their times
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), asidePrefix) {
			found = append(found, filepath.Join(dir, entry.Name()))
		}
	}
	return found
}

// sameFile compares what stands at a path with what stood there; nil is nothing.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b)
}
