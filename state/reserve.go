package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/runner"
)

const (
	reserveName = "reserve"
	reserveSize = 256 << 10 // bytes: the end of a task takes a few pages
)

// keepReserve makes a file that takes up room, so that the end of a task can be written though the disk is full. Without that,
// what has succeeded would run again in a resume. A disk that has no room for it now is none of the task's concern.
func (j *Journal) keepReserve() {
	path := filepath.Join(j.dir, reserveName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return // mostly since it is there
	}
	err = allocate(f, reserveSize)
	if closeErr := f.Close(); err != nil || closeErr != nil {
		_ = os.Remove(path)
	}
}

// writeEnd is quickly for what ends an attempt. Where it ends the task, on a full disk, it gives the reserve up and tries once more:
// between two attempts the next one would only fill that, too, and leave nothing for the end.
func (j *Journal) writeEnd(ctx context.Context, t *runner.Task, do func(*line) error) error {
	err := j.quickly(ctx, do)
	if errors.Is(err, ErrFull) && t.Status.Finished() && os.Remove(filepath.Join(j.dir, reserveName)) == nil {
		err = j.quickly(ctx, do)
	}
	return err
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
	system, err := statfs(j.dir)
	return err == nil && system.free >= enoughRoom
}
