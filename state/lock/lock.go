package lock

import (
	"context"
	"errors"
	"time"

	"github.com/10f93571/retry/state"
)

// maxWait is how long a process waits for the directory.
const maxWait = 5 * time.Second

// errHeld says that another process holds a lock of the directory.
var errHeld = errors.New("held")

// Shared locks the directory beside others that open a journal in it. While the lock is held nobody sets the journal aside, so that all
// files that are opened belong to one journal.
func Shared(ctx context.Context, dir string) (unlock func(), err error) {
	return lockDir(ctx, dir, false)
}

// Exclusive locks the directory against everybody who opens a journal in it: the journal is about to be set aside.
func Exclusive(ctx context.Context, dir string) (unlock func(), err error) {
	return lockDir(ctx, dir, true)
}

func lockDir(ctx context.Context, dir string, exclusive bool) (unlock func(), err error) {
	f, err := openForLock(dir)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() }
	deadline := time.Now().Add(maxWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := tryLock(f, exclusive)
		switch {
		case err == nil, !errors.Is(err, errHeld) && !exclusive: // a file system without such locks still has a journal
			return unlock, nil
		case !errors.Is(err, errHeld):
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case time.Now().After(deadline):
			err = state.NewFault(state.ErrLocked, "retry doctor --state "+dir+" names the process that holds it",
				"another process is opening the journal, or setting it aside")
		default:
			time.Sleep(pause)
			continue
		}
		unlock()
		return nil, err
	}
}

// Held reports whether another process keeps everybody from opening a journal in the directory.
func Held(dir string) bool {
	f, err := openForLock(dir)
	if err != nil {
		return false // without the right to read it nobody locks it
	}
	defer func() { _ = f.Close() }()
	return errors.Is(tryLock(f, false), errHeld)
}
