// Package spool keeps bytes that are written once and read several times. A small amount stays in memory, more goes
// into a file.
package spool

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"sync"
)

// MemoryLimit is the number of bytes that a spool usually keeps in memory.
const MemoryLimit = 1 << 20

// Spool is an io.Writer that appends, and an io.ReaderAt. It is safe for concurrent use.
type Spool struct {
	limit  int
	create func() (*os.File, error)

	mutex  sync.Mutex
	memory []byte
	file   *os.File // holds everything once it exists
	size   int64
	closed bool
}

// New returns an empty spool that keeps up to limit bytes in memory. When it grows beyond that, everything moves into
// the file that create returns.
func New(limit int, create func() (*os.File, error)) *Spool {
	return &Spool{limit: limit, create: create}
}

// Of returns a spool that has the content of a file, and appends to it.
func Of(file *os.File) (*Spool, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &Spool{file: file, size: info.Size()}, nil
}

// Write appends. After an error the spool holds some part of p.
func (s *Spool) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	if s.file == nil && len(s.memory)+len(p) <= s.limit {
		s.memory = append(s.memory, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	if err := s.spill(); err != nil {
		return 0, err
	}
	n, err := s.file.WriteAt(p, s.size)
	s.size += int64(n)
	return n, err
}

// spill moves the memory into a file, unless there is one.
func (s *Spool) spill() error {
	if s.file != nil {
		return nil
	}
	file, err := s.create()
	if err != nil {
		return err
	}
	if _, err := file.Write(s.memory); err != nil {
		_ = file.Close()
		return err
	}
	s.file, s.memory = file, nil
	return nil
}

// ReadAt implements io.ReaderAt.
func (s *Spool) ReadAt(p []byte, offset int64) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	if s.file != nil {
		return s.file.ReadAt(p, offset)
	}
	if offset >= int64(len(s.memory)) {
		return 0, io.EOF
	}
	n := copy(p, s.memory[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (s *Spool) WriteTo(w io.Writer) (int64, error) { return s.WriteFrom(0, w) }

// WriteFrom writes everything from an offset on to w. It writes pieces of 32 KiB: a socket that sends packets refuses
// larger ones.
func (s *Spool) WriteFrom(offset int64, w io.Writer) (int64, error) {
	return io.Copy(w, io.NewSectionReader(s, offset, s.Size()-offset))
}

// Sync has the disk take what is in the file, if there is one.
func (s *Spool) Sync() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.file == nil {
		return nil
	}
	return s.file.Sync()
}

// Equal reports whether two spools have the same content.
func Equal(a, b *Spool) (bool, error) {
	if a.Size() != b.Size() {
		return false, nil
	}
	var sums [2][]byte
	for i, s := range []*Spool{a, b} {
		sum := sha256.New()
		if _, err := s.WriteTo(sum); err != nil {
			return false, err
		}
		sums[i] = sum.Sum(nil)
	}
	return bytes.Equal(sums[0], sums[1]), nil
}

// Truncate empties the spool. It keeps its file, if it has one.
func (s *Spool) Truncate() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if s.file != nil {
		if err := s.file.Truncate(0); err != nil {
			return err
		}
	}
	s.memory, s.size = s.memory[:0], 0
	return nil
}

// Size returns the number of bytes in the spool.
func (s *Spool) Size() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.size
}

// Close frees the memory and closes the file. Later reads and writes fail.
func (s *Spool) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.memory, s.closed = nil, true
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Temporary creates a file in dir, or in the system's temporary directory if dir is empty. The file has no name any
// more, so that it is gone when it is closed or when the process dies.
func Temporary(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "retry-spool-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // Windows refuses: the file stays until the directory is cleaned
	return file, nil
}

// Tail is an io.Writer that keeps the last bytes. It is safe for concurrent use.
type Tail struct {
	limit  int
	mutex  sync.Mutex
	buffer []byte
}

// NewTail returns a tail of at most limit bytes.
func NewTail(limit int) *Tail {
	return &Tail{limit: limit}
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.buffer = append(t.buffer, p[max(0, len(p)-t.limit):]...)
	if len(t.buffer) > 2*t.limit { // not at every write: each one moves the whole tail
		t.buffer = append(t.buffer[:0], t.last()...)
	}
	return len(p), nil
}

// String returns the last bytes.
func (t *Tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.last())
}

func (t *Tail) last() []byte {
	return t.buffer[max(0, len(t.buffer)-t.limit):]
}
