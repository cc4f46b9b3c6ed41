package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

const (
	reserveName = "reserve"
	reserveSize = 256 << 10 // bytes
	lastReserve = 64 << 10  // what the end of a task takes, which is a few pages
)

// keepReserve makes a file that takes up room, so that the end of a task can be written though the disk is full. Without that,
// what has succeeded would run again in a resume. A disk that has no room for it now is none of the task's concern.
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
	if err = errors.Join(allocate(f, size), f.Close()); err != nil {
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

// writeEnd is write for what ends an attempt. Where it ends the task, on a full disk, it gives the reserve up and tries once more:
// between two attempts the next one would only fill that, too, and leave nothing for the end.
func (j *Journal) writeEnd(ctx context.Context, t *task.Task, do func(*conn) error) error {
	err := j.write(ctx, do)
	if errors.Is(err, state.ErrFull) && t.Status.Finished() && os.Remove(filepath.Join(j.dir, reserveName)) == nil {
		err = j.write(ctx, do)
	}
	return err
}

// makeRoom copies the log back where that can grow no longer, so that the next write begins it anew in the room that it has, and keeps
// it short from then on: the database needs some of the reserve to grow, and the log is not to take the rest. It reports false where
// nothing is gained: all was copied before, or others still read the log.
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

// writeZeros writes zeros: a file system that packs them gives less room back, which is still no loss.
func writeZeros(f *os.File, size int64) error {
	_, err := f.Write(make([]byte, size))
	return err
}

// enoughRoom is what the file system of a journal has to have left for more than the journal itself.
const enoughRoom = 16 << 20 // bytes

// HasRoom reports whether inputs and outputs can be kept beside the journal.
func (j *Journal) HasRoom() bool {
	system, err := lock.Statfs(j.dir)
	return err == nil && system.Free >= enoughRoom
}
