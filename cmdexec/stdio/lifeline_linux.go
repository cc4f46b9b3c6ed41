package stdio

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// feedPipe is the end of a pipe to which retry writes a command's stdin. Should retry die, the kernel would close that
// end, and a command could take this for the end of its input before the parent-death signal reaches it, or its
// children, which get none. A guard (proc.Guard) holds that end, too, and kills them. Where there is none, or both have
// been killed, the kernel kills the command's group before it closes the end.
//
// lifeline is another pipe, of which retry and the guard have both ends, for nothing else: closing the last of one sends
// SIGKILL by way of the other. The kernel closes the descriptors of a dead process in their order, or in the reverse
// one. One end is below the feed and the other above it, so that either way an end of the lifeline is closed before the
// feed.
type feedPipe struct {
	*os.File
	lifeline [2]int
	mutex    sync.Mutex // guards the fields below
	target   int        // of the lifeline; 0: none yet
	ended    bool
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

// held returns what a guard must hold, in its order.
func (f *feedPipe) held() []uintptr {
	return []uintptr{uintptr(f.lifeline[0]), f.Fd(), uintptr(f.lifeline[1])}
}

// bind has the kernel kill a process, or a group if target is negative, when this process and the guard die. Where it
// refuses, for a setuid program for example, the command lives on.
func (f *feedPipe) bind(target int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.setTarget(target)
}

// hasReader reports whether some process can still read the pipe.
func (f *feedPipe) hasReader() bool {
	happened, err := poll(f.File, 0, 0)
	return err == nil && happened&unix.POLLERR == 0
}

func (f *feedPipe) setTarget(target int) {
	f.target = target
	for _, fd := range f.lifeline {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, target)
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGKILL))
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_ASYNC)
	}
}

// Close ends the input. From now on only the process that was started dies with retry: the rest of its group may go on.
func (f *feedPipe) Close() error {
	err := f.File.Close()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.ended && f.target < 0 {
		f.setTarget(-f.target)
	}
	return err
}

// end ends what bind has begun.
func (f *feedPipe) end() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.ended = true
	for _, fd := range f.lifeline {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
	}
	_, _ = unix.Close(f.lifeline[0]), unix.Close(f.lifeline[1])
}
