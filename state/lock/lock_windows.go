package lock

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// openForLock opens a file in the directory, which has no locks itself here.
func openForLock(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "open.lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

func tryLock(f *os.File, alone bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at(0))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}
