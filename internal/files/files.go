// Package files writes the files that users name, such as reports. It replaces a regular file at once, and writes to
// what is there through a symbolic link, to a pipe or to a device. The kernel follows the links: where it forbids a
// shell's redirect to follow another user's link in a sticky directory, retry must not find the target by itself.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/renameio/v2/maybe"
)

// IsLink reports whether a path names a symbolic link.
func IsLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// Same reports whether two paths lead to the same file.
func Same(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return a == b || err == nil && err2 == nil && os.SameFile(one, other)
}

// IsDescriptor reports whether a path names an open file, as /dev/stdout does behind its links. It must not be
// replaced: processes that have the old file open would go on writing to that.
func IsDescriptor(path string) bool {
	return strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/dev/std")
}

// SyncDir makes new names in a directory survive a power loss. Some file systems cannot sync a directory, and Windows
// cannot.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// Target returns the absolute path that Replace has to write for a path, or an error if it cannot be written.
func Target(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return "", fmt.Errorf("%s is a directory", path)
	case err == nil && (!info.Mode().IsRegular() || IsDescriptor(path)):
		return path, nil
	case IsLink(path):
		file, err := openThrough(path, 0)
		if err != nil {
			return "", err
		}
		return path, file.Close()
	}
	trial, err := os.CreateTemp(filepath.Dir(path), ".retry-*")
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return "", &fs.PathError{Op: "create", Path: path, Err: failed.Err}
	} else if err != nil {
		return "", err
	}
	_ = trial.Close()
	return path, os.Remove(trial.Name())
}

// Replace replaces a regular file at once: a reader finds the whole old content or the whole new one. The file keeps
// its mode; a new file has 0644 less the umask.
func Replace(path string, content []byte) error {
	info, err := os.Stat(path)
	through := err == nil && (!info.Mode().IsRegular() || IsDescriptor(path))
	if !through && !IsLink(path) {
		return maybe.WriteFile(path, content, 0o644)
	}
	flags := os.O_TRUNC
	if IsDescriptor(path) {
		flags = 0
	}
	file, err := openThrough(path, flags)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// openThrough opens what a path leads to for writing, as a shell's redirect does. A pipe without a reader is an error,
// not a wait.
func openThrough(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK|flags, 0o644)
}
