package blobs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"
)

// List returns the blobs that were last used before a time, in no order.
func (s *Store) List(before time.Time) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for name, err := range s.names() {
			if err == nil && checkName(name) != nil {
				continue
			}
			var info Info
			if err == nil {
				info, err = s.Stat(name)
			}
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Used.Before(before) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// names returns the names of all files, a few at a time: there may be a million.
func (s *Store) names() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := os.Open(s.dir)
		if err != nil {
			yield("", err)
			return
		}
		defer func() { _ = dir.Close() }()
		for {
			names, err := dir.Readdirnames(1000)
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield("", err)
				}
				return
			}
		}
	}
}

// Swept is what a sweep has removed.
type Swept struct {
	Blobs int
	Bytes int64
}

// Sweep removes the blobs that were last used before a time and that inUse denies, and what a crash left half written.
// It goes on after an error of one blob. It takes a blob away under another name, looks again whether it was kept in
// the meantime, and only then removes it: what was kept before that is still there, and who wants to keep it after that
// is told that it is gone. So no lock is needed.
func (s *Store) Sweep(
	ctx context.Context, before time.Time, inUse func(Info) (bool, error),
) (swept Swept, err error) {
	for name, failed := range s.names() {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil {
			return swept, errors.Join(err, failed)
		}
		hash, left := strings.CutSuffix(name, outgoing)
		switch {
		case strings.HasSuffix(name, temporary):
			failed = s.removeOld(name, before)
		case checkName(hash) != nil: // not ours
		case left:
			failed = s.remove(hash, before, inUse, &swept)
		default:
			failed = s.sweep(hash, before, inUse, &swept)
		}
		if !errors.Is(failed, fs.ErrNotExist) { // another process sweeps, too
			err = errors.Join(err, failed)
		}
	}
	return swept, err
}

func (s *Store) sweep(hash string, before time.Time, inUse func(Info) (bool, error), swept *Swept) error {
	info, err := s.Stat(hash)
	if err != nil || !info.Used.Before(before) {
		return err
	}
	if used, err := inUse(info); err != nil || used {
		return err
	}
	if err := os.Rename(s.path(hash), s.path(hash+outgoing)); err != nil {
		return err
	}
	return s.remove(hash, before, inUse, swept)
}

// remove removes what was taken away, or puts it back where it is used after all.
func (s *Store) remove(hash string, before time.Time, inUse func(Info) (bool, error), swept *Swept) error {
	info, err := os.Stat(s.path(hash + outgoing))
	if err != nil {
		return err
	}
	used := !info.ModTime().Before(before)
	if !used {
		used, err = inUse(Info{Hash: hash, Size: info.Size(), Used: info.ModTime()})
	}
	if err != nil || used {
		return errors.Join(err, s.putBack(hash))
	}
	if err := os.Remove(s.path(hash + outgoing)); err != nil {
		return err
	}
	swept.Blobs++
	swept.Bytes += info.Size()
	return nil
}

// putBack gives a blob its name again, unless the same content was put in the meantime.
func (s *Store) putBack(hash string) error {
	if err := os.Link(s.path(hash+outgoing), s.path(hash)); err == nil || errors.Is(err, fs.ErrExist) {
		return os.Remove(s.path(hash + outgoing))
	}
	return os.Rename(s.path(hash+outgoing), s.path(hash))
}

func (s *Store) removeOld(name string, before time.Time) error {
	info, err := os.Stat(s.path(name))
	if err != nil || !info.ModTime().Before(before) {
		return err
	}
	return os.Remove(s.path(name))
}
