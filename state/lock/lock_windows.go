package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

func homePlace(getenv func(string) string) (Place, error) {
	if local := getenv("LOCALAPPDATA"); filepath.IsAbs(local) {
		return Place{filepath.Join(local, "retry"), "LOCALAPPDATA"}, nil
	}
	return Place{}, errors.New("LOCALAPPDATA is not set\nhint: set RETRY_STATE_DIR or give --state DIR")
}

// checkHome accepts everything: a profile is its user's.
func checkHome(Place) error { return nil }

// CheckOwner accepts everything: the access list of a profile's directory keeps it private.
func CheckOwner(string, fs.FileInfo) error { return nil }

// Writable accepts everything: access lists decide when the file is opened.
func Writable(string) bool { return true }

// CheckDescriptors accepts everything: Windows has no limit that a user sets.
func CheckDescriptors() error { return nil }

// openForLock opens a file in the directory: Windows cannot lock a directory.
func openForLock(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "open.lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

// tryLock locks a directory, or returns errHeld.
func tryLock(f *os.File, exclusive bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at(0))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

func at(number int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(number), OffsetHigh: uint32(number >> 32)}
}

// Acquire makes this process the owner, or reports false if another process is.
func (o *Owners) Acquire(number int64) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(o.file.Fd()), flags, 0, 1, 0, at(number))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	if err == nil {
		o.own.Store(number, nil)
	}
	return err == nil, err
}

// Release ends the ownership.
func (o *Owners) Release(number int64) error {
	o.own.Delete(number)
	return windows.UnlockFileEx(windows.Handle(o.file.Fd()), 0, 1, 0, at(number))
}

// Owner returns UnknownPID if a process owns the number, else 0.
func (o *Owners) Owner(number int64) (pid int, err error) {
	free, err := o.Acquire(number)
	if err != nil || !free {
		return UnknownPID, err
	}
	return 0, o.Release(number)
}

// Blocker returns ErrUnsupported: Windows does not tell who holds a lock.
func Blocker(string, bool, int64, int64) (pid int, err error) { return 0, errors.ErrUnsupported }

// Queue does nothing: Windows has no ordered queue of locks.
func (o *Owners) Queue(context.Context) (done func()) { return func() {} }

func systemStatfs(path string) (FileSystem, error) {
	volume, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return FileSystem{}, err
	}
	system := FileSystem{Name: "network drive", Remote: windows.GetDriveType(volume) == windows.DRIVE_REMOTE}
	err = windows.GetDiskFreeSpaceEx(volume, &system.Free, nil, nil)
	return system, err
}
