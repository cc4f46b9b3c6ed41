// Package config reads a TOML file and knows the line and the column of each key and value. What the keys mean is not its business.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Limit is the size of a file in bytes beyond which it is no config file.
const Limit = 256 << 10

// ErrAbsent says that there is no such file.
var ErrAbsent = errors.New("there is no such file")

// Read reads a file and parses it. It returns ErrAbsent where there is none; an error that is not about the content has no position.
func Read(path string) (*File, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// ReadFrom parses what a reader yields to its end, for example a pipe; path is what mistakes call it.
func ReadFrom(path string, from io.Reader) (*File, error) {
	data, err := all(path, from)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// load costs one system call where there is no file. It waits for nobody: a pipe that no one writes to is refused like all that is no
// plain file, /dev/null excepted.
func load(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("read the config file %s: %w", path, ErrAbsent)
	}
	if err != nil {
		return nil, unread(path, err, "make it readable for the user who runs retry")
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, unread(path, err, "")
	case info.IsDir():
		return nil, unread(path, errors.New("it is a directory"), "name the file in it")
	case !info.Mode().IsRegular() && path != os.DevNull:
		return nil, unread(path, errors.New("it is no plain file"), "copy what it yields to a file")
	}
	return all(path, file)
}

func all(path string, from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, Limit+1))
	switch {
	case err != nil:
		return nil, unread(path, err, "")
	case len(data) > Limit:
		return nil, unread(path, fmt.Errorf("it is larger than %d KiB", Limit>>10), "that is no config file: is it the right one?")
	}
	return data, nil
}

func unread(path string, err error, hint string) error {
	if reason := (*fs.PathError)(nil); errors.As(err, &reason) {
		err = reason.Err // the path is said already
	}
	err = fmt.Errorf("read the config file %s: %w", path, err)
	if hint != "" {
		err = fmt.Errorf("%w\nhint: %s", err, hint)
	}
	return err
}
