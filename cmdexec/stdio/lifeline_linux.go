package stdio

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// feedPipe is the end of a pipe to which retry writes a command's stdin. Should retry die, the kernel would close that
// end, and a command could take this for the end of its input before the parent-death signal reaches it, or its
// children, which get none. So the kernel kills the command's group first.
//
// lifeline is another pipe, of which retry has both ends, for nothing else: closing one of them sends SIGKILL by way of
// the other. The kernel closes the descriptors of a dead process in their order, or in the reverse one. One end is
// below the feed and the other above it, so that either way an end of the lifeline is closed before the feed.
type feedPipe struct {
	*os.File
	lifeline [2]int
	once     sync.Once
}

// newFeed makes a pipe for an attempt.
func newFeed() (read *os.File, feed *feedPipe, err error) {
	var line, data [2]int
	if err := unix.Pipe2(line[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.Pipe2(data[:], unix.O_CLOEXEC); err != nil {
		_, _ = unix.Close(line[0]), unix.Close(line[1])
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	write, err := moveAbove(data[1], line[0])
	if err == nil {
		line[1], err = moveAbove(line[1], write)
	}
	if err == nil {
		err = unix.SetNonblock(write, true) // so that closing it ends a blocked write
	}
	if err != nil {
		for _, fd := range []int{line[0], line[1], data[0], write} {
			_ = unix.Close(fd)
		}
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	feed = &feedPipe{File: os.NewFile(uintptr(write), "|1"), lifeline: line}
	return os.NewFile(uintptr(data[0]), "|0"), feed, nil
}

// moveAbove gives a descriptor a number above another one.
func moveAbove(fd, other int) (int, error) {
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, other+1)
	_ = unix.Close(fd)
	return moved, err
}

// bind has the kernel kill a process, or a group if target is negative, when this process dies. Where it refuses, for a
// setuid program for example, the command dies as without it.
func (f *feedPipe) bind(target int) {
	for _, fd := range f.lifeline {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, target)
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGKILL))
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_ASYNC)
	}
}

// Close ends the input, and after that what bind has begun.
func (f *feedPipe) Close() error {
	f.once.Do(func() {
		_ = f.File.Close()
		for _, fd := range f.lifeline {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
		}
		_, _ = unix.Close(f.lifeline[0]), unix.Close(f.lifeline[1])
	})
	return nil
}
