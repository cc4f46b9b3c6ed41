// Package files writes the files that users name, such as reports. It follows symbolic links, replaces a regular file
// at once, and writes to a pipe or a device.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2/maybe"
)

// maxLinks is how many symbolic links in a row Linux follows.
const maxLinks = 40

// Follow returns where a path leads. The last link may lead to a file that does not exist yet.
func Follow(path string) (string, error) {
	for range maxLinks {
		link, err := os.Readlink(path)
		if err != nil || IsDescriptor(path) {
			return path, nil
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", errors.New("there are too many symbolic links")
}

// IsDescriptor reports whether a path names an open file, as /dev/stdout does behind its links. It must not be
// replaced: processes that have the old file open would go on writing to that.
func IsDescriptor(path string) bool {
	return strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/fd/")
}

// Target returns the absolute path, without links, that Replace has to write for a path, or an error if it cannot be
// written.
func Target(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = Follow(path)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return "", fmt.Errorf("%s is a directory", path)
	case err == nil && isWrittenThrough(path, info):
		return path, nil
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
	if info, err := os.Stat(path); err != nil || !isWrittenThrough(path, info) {
		return maybe.WriteFile(path, content, 0o644)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // a pipe without a reader is an error, not a wait
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

func isWrittenThrough(path string, info fs.FileInfo) bool {
	return !info.Mode().IsRegular() || IsDescriptor(path)
}
