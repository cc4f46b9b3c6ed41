package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// copyTries is how often a copy begins anew since a writer was faster.
const copyTries = 5

// copyFiles copies a database and its WAL. A pair between whose halves somebody wrote is no database: it is copied again.
func copyFiles(from, to string) error {
	for range copyTries {
		before := fingerprint(from)
		if err := errors.Join(copyFile(from, to), copyFile(from+walSuffix, to+walSuffix)); err != nil {
			return err
		}
		if fingerprint(from) == before {
			return nil
		}
	}
	return errors.New("it changes all the time\nhint: try again")
}

// stamps are what a write changes about the two files.
type stamps struct {
	size, wal           int64
	changed, walChanged int64 // nanoseconds
}

func fingerprint(path string) (s stamps) {
	if info, err := os.Stat(path); err == nil {
		s.size, s.changed = info.Size(), info.ModTime().UnixNano()
	}
	if info, err := os.Stat(path + walSuffix); err == nil {
		s.wal, s.walChanged = info.Size(), info.ModTime().UnixNano()
	}
	return s
}

// copyFile makes the copy private. What does not exist is removed there.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(to)
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
