// Package blobs keeps the bodies of requests in a directory, each in a file that is named by its SHA-256. The same
// content is kept once.
//
// A blob is as durable as a task: when Put returns, it is on disk. It is never changed, so that a worker can read it
// while the same content is put again.
package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/files"
)

// ErrName says that a name is not the SHA-256 of anything: it has to have 64 hexadecimal digits in lower case.
var ErrName = errors.New("want 64 hexadecimal digits in lower case")

// ErrUnwritable says that the directory cannot be written now. The error that it comes with says why: syscall.ENOSPC
// where the disk is full.
var ErrUnwritable = errors.New("the blobs cannot be written")

// MismatchError says that a content has another SHA-256 than it was put under.
type MismatchError struct{ Want, Got string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("the content has the SHA-256 %s, not %s", e.Got, e.Want)
}

// TooLargeError says that a content has more bytes than allowed.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the content is larger than %d bytes", e.Limit)
}

// Store is a directory of blobs. Many goroutines and processes may use it.
type Store struct{ dir string }

// Info is what is known of a blob. Used is when it was last put or kept.
type Info struct {
	Hash string
	Size int64
	Used time.Time
}

// Files that are no blobs: what is being written, and what a sweep is about to remove.
const (
	temporary = ".tmp"
	outgoing  = ".old"
)

// New returns the Store of a directory, which it makes with mode 0700.
func New(dir string) (*Store, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return &Store{dir: dir}, files.SyncDir(filepath.Dir(dir))
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has mode %04o, so that others may use it\nhint: chmod 700 %s", dir, mode, dir)
	}
	return &Store{dir: dir}, nil
}

// Hash returns the name of a content.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Ref returns how a task refers to a blob: sha256:HEX.
func Ref(hash string) string { return "sha256:" + hash }

// ParseRef returns the hash of a reference, or ErrName.
func ParseRef(ref string) (hash string, err error) {
	hash, found := strings.CutPrefix(ref, "sha256:")
	if !found {
		return "", fmt.Errorf("invalid reference %.80q: want sha256: and the SHA-256", ref)
	}
	return hash, checkName(hash)
}

func checkName(hash string) error {
	if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return fmt.Errorf("invalid SHA-256 %.80q: %w", hash, ErrName)
	}
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// Put keeps what r has, at most limit bytes, under its hash. It returns after the disk has it, and whether it was not
// there before. The error is ErrName, a *MismatchError, a *TooLargeError, ErrUnwritable, or what r or ctx said. Nothing
// is kept then.
func (s *Store) Put(ctx context.Context, hash string, r io.Reader, limit int64) (size int64, created bool, err error) {
	if err := checkName(hash); err != nil {
		return 0, false, err
	}
	file, err := os.CreateTemp(s.dir, hash[:8]+".*"+temporary) // with mode 0600
	if err != nil {
		return 0, false, unwritable(err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	size, err = write(ctx, file, hash, r, limit)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, false, err
	}
	created, err = s.place(file.Name(), hash)
	if err != nil {
		return 0, false, unwritable(err)
	}
	return size, created, nil
}

// write copies a content to a file, checks it, and waits for the disk.
func write(ctx context.Context, file *os.File, hash string, r io.Reader, limit int64) (int64, error) {
	sum := sha256.New()
	from := io.LimitReader(&cancelled{ctx: ctx, Reader: r}, limit+1)
	size, err := io.Copy(&marked{file}, io.TeeReader(from, sum))
	if err != nil {
		return 0, err
	}
	if size > limit {
		return 0, &TooLargeError{Limit: limit}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != hash {
		return 0, &MismatchError{Want: hash, Got: got}
	}
	if err := file.Sync(); err != nil {
		return 0, unwritable(err)
	}
	return size, nil
}

// place gives a finished file its name. A link fails where the name is there, so that one of many puts makes it.
func (s *Store) place(from, hash string) (created bool, err error) {
	err = os.Link(from, s.path(hash))
	switch {
	case err == nil:
		created = true
	case errors.Is(err, fs.ErrExist):
		if err := s.touch(hash); err != nil { // a sweep has just removed it
			return true, errors.Join(os.Rename(from, s.path(hash)), files.SyncDir(s.dir))
		}
	default: // a file system without links
		created = true
		if err := os.Rename(from, s.path(hash)); err != nil {
			return false, err
		}
	}
	return created, files.SyncDir(s.dir)
}

// Keep notes that a blob is in use from now on, or returns fs.ErrNotExist. Whoever writes down a reference has to call
// it before: a sweep leaves alone what was kept after the time that it was told.
func (s *Store) Keep(hash string) (Info, error) {
	if err := checkName(hash); err != nil {
		return Info{}, err
	}
	if err := s.touch(hash); err != nil {
		return Info{}, err
	}
	return s.Stat(hash)
}

// touch makes a blob as young as can be. It looks for it afterwards: a sweep may take the name away after the kernel
// has found the file by it, and before it sets the time. Where the name is there then, each later sweep sees the time.
func (s *Store) touch(hash string) error {
	now := time.Now()
	if err := os.Chtimes(s.path(hash), now, now); err != nil {
		return err
	}
	_, err := os.Stat(s.path(hash))
	return err
}

// Stat returns what is known of a blob, ErrName, or fs.ErrNotExist.
func (s *Store) Stat(hash string) (Info, error) {
	if err := checkName(hash); err != nil {
		return Info{}, err
	}
	info, err := os.Stat(s.path(hash))
	if err != nil {
		return Info{}, err
	}
	return Info{Hash: hash, Size: info.Size(), Used: info.ModTime()}, nil
}

// Open opens a blob for reading, and returns its size; or ErrName, or fs.ErrNotExist.
func (s *Store) Open(hash string) (content io.ReadCloser, size int64, err error) {
	if err := checkName(hash); err != nil {
		return nil, 0, err
	}
	file, err := os.Open(s.path(hash))
	if errors.Is(err, fs.ErrNotExist) { // a sweep may be looking at it
		if file, err = os.Open(s.path(hash + outgoing)); err != nil {
			file, err = os.Open(s.path(hash))
		}
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// Remove removes a blob. One that is not there is no error.
func (s *Store) Remove(hash string) error {
	if err := checkName(hash); err != nil {
		return err
	}
	if err := os.Remove(s.path(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// marked adds ErrUnwritable to what a file says, so that it is not taken for the error of a reader.
type marked struct{ file *os.File }

func (m *marked) Write(p []byte) (int, error) {
	n, err := m.file.Write(p)
	return n, unwritable(err)
}

func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnwritable, err)
}

// cancelled is a reader that ends with its context.
type cancelled struct {
	io.Reader
	ctx context.Context
}

func (c *cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}
