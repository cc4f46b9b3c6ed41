package cmdexec

import (
	"io"
	"os"
)

// Stdin gives each attempt of one task its standard input.
type Stdin interface {
	// open prepares the next attempt's.
	open() (*input, error)
}

// input is the stdin of one attempt.
type input struct {
	file *os.File     // what the process gets
	fed  func()       // called once the process has it
	end  func() error // called when the process has ended; an error says that it did not get what it should have
}

func nothing()       {}
func noError() error { return nil }

// NullStdin gives every attempt an empty stdin.
type NullStdin struct{}

func (NullStdin) open() (*input, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return &input{file: null, fed: nothing, end: null.Close}, nil
}

// InheritedStdin lets the attempts have retry's own stdin. The first one shares it, as a command without retry would. The later
// ones read a file from the same place again.
type InheritedStdin struct {
	File     *os.File
	Consumed func() // called once, where a second attempt starts and the first may have read what cannot be read again

	opened bool
	start  int64 // where the first attempt began to read a file
	before stream
}

func (s *InheritedStdin) open() (*input, error) {
	again := s.opened
	s.opened = true
	shared := &input{file: s.File, fed: nothing, end: noError}
	switch kindOf(s.File) {
	case kindFile:
		at, _ := s.File.Seek(0, io.SeekCurrent)
		if again && at != s.start { // else it was not read, and what is locked through it stays so
			return s.rewound()
		}
		s.start = at
	case kindStream:
		if !again {
			s.before = streamOf(s.File)
		} else if s.Consumed != nil && !s.before.untouched(streamOf(s.File)) {
			s.Consumed()
			s.Consumed = nil
		}
	}
	return shared, nil
}

// rewound opens the file anew, at the place where the first attempt began. Its own offset is moved on afterwards, never back: a
// loop around retry may be reading from the same descriptor meanwhile, and must not see a line twice.
func (s *InheritedStdin) rewound() (*input, error) {
	private, err := reopen(s.File)
	if err != nil { // not here, or not allowed: move the shared offset
		_, err := s.File.Seek(s.start, io.SeekStart)
		return &input{file: s.File, fed: nothing, end: noError}, err
	}
	if _, err := private.Seek(s.start, io.SeekStart); err != nil {
		_ = private.Close()
		return nil, err
	}
	return &input{file: private, fed: nothing, end: func() error {
		s.moveOn(private)
		return private.Close()
	}}, nil
}

// Private returns a file to read what stdin holds from here on, and a function that lets go of it. Where stdin is a file, its own
// offset stays where it is: who shares it, such as a loop around retry, does not miss what is read ahead.
func Private(stdin *os.File) (*os.File, func()) {
	if kindOf(stdin) != kindFile {
		return stdin, nothing
	}
	at, err := stdin.Seek(0, io.SeekCurrent)
	private, err2 := reopen(stdin)
	if err != nil || err2 != nil {
		return stdin, nothing
	}
	if _, err := private.Seek(at, io.SeekStart); err != nil {
		_ = private.Close()
		return stdin, nothing
	}
	return private, func() { _ = private.Close() }
}

func (s *InheritedStdin) moveOn(private *os.File) {
	read, err := private.Seek(0, io.SeekCurrent)
	shared, err2 := s.File.Seek(0, io.SeekCurrent)
	if err == nil && err2 == nil && read > shared {
		_, _ = s.File.Seek(read, io.SeekStart)
	}
}

// kind is what a stdin can do.
type kind int

const (
	kindOther  kind = iota // a terminal or a device, or closed: what it gives depends on more than us
	kindFile               // can be read from the same place again
	kindStream             // what was read is gone
)

func kindOf(f *os.File) kind {
	info, err := f.Stat()
	switch {
	case err != nil:
		return kindOther
	case info.Mode().IsRegular(), info.Mode().Type() == os.ModeDevice: // of blocks, such as a disk
		return kindFile
	case info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return kindStream
	}
	return kindOther
}

// stream is what can be seen of a pipe without reading from it.
type stream struct {
	available int  // bytes that wait to be read
	ended     bool // nobody can write to it any more
}

// pipeCapacity is what a pipe holds before its writer has to wait, unless somebody changed it.
const pipeCapacity = 64 << 10

// untouched reports whether nothing was read between two looks. An open one that was empty or full looks the same when it was
// read and refilled.
func (s stream) untouched(later stream) bool {
	return s.available == later.available && (s.ended || s.available > 0 && s.available < pipeCapacity)
}
