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
)

const (
	walSuffix   = "-wal"
	shmSuffix   = "-shm"
	asidePrefix = "corrupt-"
	asideTime   = "20060102T150405Z"
)

// asideOrder is in which order a damaged journal leaves. The database goes first and its WAL last: should we die in between, a WAL
// without a database is damage to whoever opens the journal next, while a database without its WAL would look sound and lack
// what was acknowledged. The locks and the inputs go along, since the numbers of tasks begin anew.
var asideOrder = []string{DatabaseName, DatabaseName + shmSuffix, lock.OwnersFile, inputsName, DatabaseName + walSuffix}

// SetAside moves the journal that damage, an ErrCorrupt, complains of into a directory beside it, and returns that. It returns ""
// where another process has done so before. Those that have the old files open go on with them there, and harm nothing.
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
