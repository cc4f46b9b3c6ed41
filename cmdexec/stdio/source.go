package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/task"
)

// Source says what the stdin is; the zero value is nothing: it is closed, empty for good, or /dev/null. It must be
// called before the first attempt begins to read.
func (s *InheritedStdin) Source() task.Source {
	switch s.kind() {
	case kindFile:
		source := sourceOf(pathOf(s.File), s.info)
		source.Offset, _ = s.begin()
		return source
	case kindStream:
		now := stateOf(s.File)
		if now.available == 0 && now.ended && !hasName(s.File) && !wasReset(s.File) {
			return task.Source{} // there is nothing to lose of an empty one
		}
		return task.Source{Pipe: true, Inode: files.Inode(s.info)}
	}
	switch {
	case s.info == nil: // it is closed
		return task.Source{}
	case IsTerminal(s.File):
		return task.Source{Terminal: true}
	case isNull(s.info):
		return task.Source{}
	}
	return sourceOf(pathOf(s.File), s.info)
}

// KeptSource is the Source of what is read to its end: also that of a pipe in which nothing is left. It is zero for a
// FIFO, which each process may open anew, and for a device.
func (s *InheritedStdin) KeptSource() task.Source {
	switch kind := s.kind(); {
	case kind == kindFile:
		return s.Source()
	case kind == kindStream && !hasName(s.File):
		return task.Source{Pipe: true, Inode: files.Inode(s.info)}
	}
	return task.Source{}
}

// Continue has the attempts begin where those of an earlier process began that had the same file as its stdin. Of a
// stream, what that has read is gone, and so it is where the file has changed since and is not read from there: the
// error is ErrRead. A source of something else says nothing of this stdin. The shared offset stays, and where that is
// before the place, the attempts begin with it: a loop around retry has opened the file anew, and reads on from
// there.
func (s *InheritedStdin) Continue(before task.Source) error {
	now := s.Source()
	same := s.info != nil && before.Inode != 0 && files.Inode(s.info) == before.Inode
	switch {
	case !same, before.Pipe != (s.kind() == kindStream), s.kind() == kindOther:
		return nil
	case before.Pipe:
		return ErrRead
	case now.Size == before.Size && now.Modified == before.Modified:
		s.Known = now
		if before.Offset <= now.Offset { // what was left running may read on until an attempt begins
			s.start, s.opened = before.Offset, true
		}
	case now.Offset != before.Offset:
		return ErrRead
	}
	return nil
}

// HasBytes reports whether a stream has bytes that nobody has read yet.
func HasBytes(f *os.File) bool { return stateOf(f).available > 0 }

// pathOf returns where a file is. Where the system does not say, its name is that of this process's stdin: a resume
// finds it if its own stdin is the same file.
func pathOf(f *os.File) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return f.Name()
	}
	return path
}

// sourceOf describes a file, or a device, which has no content that could change.
func sourceOf(path string, info os.FileInfo) task.Source {
	source := task.Source{Path: path, Inode: files.Inode(info)}
	if kindIn(info) == kindFile {
		source.Size, source.Modified = info.Size(), info.ModTime().UnixNano()
	}
	return source
}

// Reopen opens the file or the device that a command had as its stdin, at the same place.
func Reopen(s task.Source) (*os.File, error) {
	if s.Pipe {
		return nil, errors.New("stdin was a pipe, and what was in it is gone")
	}
	if info, err := os.Stat(s.Path); err == nil && kindIn(info) == kindStream { // opening a named pipe would wait
		return nil, changed(s)
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, fmt.Errorf("stdin is gone: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		now := sourceOf(s.Path, info)
		now.Offset = s.Offset
		if now != s {
			err = changed(s)
		}
	}
	if err == nil && s.Offset > 0 {
		_, err = f.Seek(s.Offset, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// DestinationOf says which file a stream leads to; the zero value is none.
func DestinationOf(f *os.File) task.Destination {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || files.IsRemoved(info) {
		return task.Destination{}
	}
	return task.Destination{Path: pathOf(f), Inode: files.Inode(info)}
}

func changed(s task.Source) error {
	return fmt.Errorf("stdin was %q, which has changed since", s.Path)
}
