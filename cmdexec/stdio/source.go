package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/10f93571/retry/task"
)

// Source says what the stdin is. It must be called before the first attempt begins to read.
func (s *InheritedStdin) Source() task.Source {
	switch s.kind() {
	case kindFile:
		source := sourceOf(pathOf(s.File), s.info)
		source.Offset, _ = s.File.Seek(0, io.SeekCurrent)
		return source
	case kindStream:
		now := stateOf(s.File)
		return task.Source{Pipe: now.available > 0 || !now.ended} // there is nothing to lose of an empty one
	}
	return task.Source{}
}

// pathOf returns where a file is. Where the system does not say, its name is that of this process's stdin: a resume
// finds it if its own stdin is the same file.
func pathOf(f *os.File) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return f.Name()
	}
	return path
}

func sourceOf(path string, info os.FileInfo) task.Source {
	return task.Source{Path: path, Inode: inodeOf(info), Size: info.Size(), Modified: info.ModTime().UnixNano()}
}

// Reopen opens the file that a command had as its stdin, at the same place.
func Reopen(s task.Source) (*os.File, error) {
	if s.Pipe {
		return nil, errors.New("stdin was a pipe, and what was in it is gone")
	}
	if info, err := os.Stat(s.Path); err == nil && kindIn(info) != kindFile { // opening a named pipe would wait
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
	if err == nil {
		_, err = f.Seek(s.Offset, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func changed(s task.Source) error {
	return fmt.Errorf("stdin was %q, which has changed since", s.Path)
}
