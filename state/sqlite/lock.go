package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/10f93571/retry/state"
)

// errHeld says that another process holds a lock of the directory.
var errHeld = errors.New("held")

// lockDir locks the directory: shared by those that open a journal in it, alone for who moves one away. In between, a file could
// be opened that belongs to the other journal.
func lockDir(ctx context.Context, dir string, alone bool) (unlock func(), err error) {
	f, err := openForLock(dir)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() }
	give := time.Now().Add(busyTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := tryLock(f, alone)
		switch {
		case err == nil, !errors.Is(err, errHeld) && !alone: // a file system without such locks still has a journal
			return unlock, nil
		case !errors.Is(err, errHeld):
			unlock()
			return nil, err
		case ctx.Err() != nil:
			unlock()
			return nil, context.Cause(ctx)
		case time.Now().After(give):
			unlock()
			return nil, state.NewFault(state.ErrLocked, hintFor(state.ErrLocked, dir), "another process is opening the journal, or setting it aside")
		}
		time.Sleep(pause)
	}
}

// sameFile compares what stands at a path with what stood there; nil is nothing.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b)
}
