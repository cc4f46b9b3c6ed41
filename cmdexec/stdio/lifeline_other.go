//go:build !linux

package stdio

import "os"

// feedPipe is the end of a pipe to which retry writes a command's stdin. Should retry be killed, the command sees its
// end: only Linux offers a way to stop it before.
type feedPipe struct{ *os.File }

// newFeed makes a pipe for an attempt.
func newFeed() (read *os.File, feed *feedPipe, err error) {
	read, write, err := os.Pipe()
	return read, &feedPipe{write}, err
}

func (*feedPipe) held() []uintptr { return nil }

func (*feedPipe) bind(int) {}

func (*feedPipe) end() {}

// hasReader is false: nobody looks whether something reads the pipe.
func (*feedPipe) hasReader() bool { return false }
