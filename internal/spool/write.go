package spool

import (
	"errors"
	"io"
	"os"
	"slices"
)

// copySize is how much is copied at a time: as much as a pipe holds. A socket of packets takes no more than some times that in one.
const copySize = 64 << 10

// WriteTo implements io.WriterTo; see WriteFrom.
func (s *Spool) WriteTo(w io.Writer) (int64, error) { return s.WriteFrom(0, w) }

// WriteFrom writes what follows an offset. What is in a file goes to another file, or to a pipe, without passing through this process,
// where the system can do that. Nothing may be written meanwhile.
func (s *Spool) WriteFrom(offset int64, w io.Writer) (int64, error) {
	memory, file, size := s.contents()
	if file == nil {
		return writeTo(w, memory[min(offset, size):])
	}
	to, isFile := w.(*os.File)
	if isFile && isRegular(to) {
		if _, err := file.Seek(offset, io.SeekStart); err != nil {
			return 0, err
		}
		return io.Copy(to, io.LimitReader(file, size-offset))
	}
	given := int64(0)
	for n, err := 0, error(nil); isFile && err == nil; given += int64(n) {
		n, err = s.GiveTo(to, offset+given)
	}
	n, err := copyTo(w, io.NewSectionReader(file, offset+given, size-offset-given))
	return given + n, err
}

// GiveTo writes some of what follows an offset to a pipe, which then has pages of the file instead of copies. It waits for room like a
// write. Where that fails nothing of it is written, and a copy has to do: in memory, not into a pipe, or not on this system.
func (s *Spool) GiveTo(pipe *os.File, offset int64) (int, error) {
	_, file, size := s.contents()
	if file == nil || offset >= size {
		return 0, errors.ErrUnsupported
	}
	n, err := toPipe(file, offset, pipe, size-offset)
	if n == 0 && err == nil {
		err = io.ErrUnexpectedEOF // somebody has cut the file
	}
	return n, err
}

func (s *Spool) contents() (memory []byte, file *os.File, size int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.memory, s.file, s.size
}

func isRegular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

func writeTo(w io.Writer, rest []byte) (written int64, err error) {
	for piece := range slices.Chunk(rest, copySize) {
		n, err := w.Write(piece)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// copyTo copies by a buffer of its own size. What the two ends could do better has been tried.
func copyTo(w io.Writer, rest *io.SectionReader) (int64, error) {
	if rest.Size() == 0 {
		return 0, nil
	}
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{rest}, make([]byte, min(rest.Size(), copySize)))
}
