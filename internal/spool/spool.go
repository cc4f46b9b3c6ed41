// Package spool keeps bytes that are written once and read several times: in memory while they are few, then in a file.
package spool

import (
	"io"
	"os"
	"sync"
)

// MemoryLimit is how many bytes a spool keeps in memory unless told otherwise.
const MemoryLimit = 1 << 20

// Spool is an io.Writer that appends and an io.ReaderAt. It is safe for concurrent use.
type Spool struct {
	limit  int
	create func() (*os.File, error)

	mutex  sync.Mutex
	memory []byte
	file   *os.File // holds everything once there is one
	size   int64
	closed bool
}

// New returns an empty spool that keeps up to limit bytes in memory. What is more goes into the file that create makes, with
// what came before.
func New(limit int, create func() (*os.File, error)) *Spool {
	return &Spool{limit: limit, create: create}
}

// Of returns a spool that holds what a file holds.
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

// spill moves what is in memory into a file.
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

// Truncate empties the spool. What was in a file stays there, for what comes next.
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

// Size returns how many bytes the spool holds.
func (s *Spool) Size() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.size
}

// Close lets go of the memory and of the file. Nothing can be written then.
func (s *Spool) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.memory, s.size, s.closed = nil, 0, true
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Temporary makes a file in dir that is gone when it is closed, or when the process dies. An empty dir is the system's
// directory for such files.
func Temporary(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "retry-spool-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // windows refuses; there it stays until the directory is cleaned
	return file, nil
}
