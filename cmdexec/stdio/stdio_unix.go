//go:build unix

package stdio

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poll waits up to timeout for events on f, and returns what happened. With a zero timeout it returns at once, and a
// signal that comes meanwhile does not keep it from an answer.
func poll(f *os.File, events int16, timeout time.Duration) (happened int16, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		for interrupted := true; interrupted; interrupted = timeout == 0 && errors.Is(err, unix.EINTR) {
			_, err = unix.Poll(fds, int(timeout.Milliseconds()))
		}
		happened = fds[0].Revents
	})
	if closed != nil {
		return 0, closed
	}
	return happened, err
}

func stateOf(f *os.File) (s streamState) {
	happened, err := poll(f, unix.POLLIN, 0)
	if err != nil {
		return s
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) { s.available, _ = unix.IoctlGetInt(int(fd), bytesAvailable) })
	shutDown := happened&unix.POLLIN != 0 && s.available == 0 // of the writing side of a socket
	s.ended = happened&unix.POLLHUP != 0 || shutDown
	return s
}

// WatchWriter notes from now on when a pipe or a socket loses its last writer: what the writer has left in it may be
// read long after that. The function that it returns tells the time; zero as long as there is a writer. It watches
// streams alone.
func WatchWriter(f *os.File) (gone func() time.Time, isStream bool) {
	var since atomic.Pointer[time.Time]
	gone = func() time.Time {
		if at := since.Load(); at != nil {
			return *at
		}
		return time.Time{}
	}
	if kindOf(f) != kindStream {
		return gone, false
	}
	go func() {
		for {
			happened, err := poll(f, peerShutDown, time.Second) // not for ever: nobody could close f
			switch {
			case err != nil && !errors.Is(err, unix.EINTR):
				return
			case happened == 0:
				since.Store(nil) // another process has opened the FIFO for writing
				continue
			case since.Load() == nil:
				now := time.Now()
				since.Store(&now)
			}
			if !hasName(f) {
				return
			}
			time.Sleep(writerInterval)
		}
	}()
	return gone, true
}

// writerInterval is the time between two looks for another writer of a FIFO.
const writerInterval = 50 * time.Millisecond

// isShut reports whether a stream has no writer any more, whether all was read that it has left or not.
func isShut(f *os.File) bool {
	happened, err := poll(f, peerShutDown, 0)
	return err == nil && happened != 0
}

// hasMessages reports whether f is a socket that keeps messages apart.
func hasMessages(f *os.File) (apart bool) {
	info, err := f.Stat()
	raw, err2 := f.SyscallConn()
	if err != nil || err2 != nil || info.Mode()&os.ModeSocket == 0 {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		kind, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
		apart = err == nil && kind != unix.SOCK_STREAM
	})
	return apart
}

// receive reads the next message from a socket. It returns errTruncated where that is longer than p.
func receive(f *os.File, p []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	flags := 0
	for {
		closed := raw.Control(func(fd uintptr) { n, _, flags, _, err = unix.Recvmsg(int(fd), p, nil, 0) })
		switch {
		case closed != nil:
			return 0, closed
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			await(readable, f)
		case err != nil:
			return 0, err
		case flags&unix.MSG_TRUNC != 0:
			return 0, errTruncated
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// ReaderGone reports whether f is a pipe or a socket that has no reader any more.
func ReaderGone(f *os.File) bool {
	if kindOf(f) != kindStream {
		return false
	}
	happened, _ := poll(f, unix.POLLOUT, 0)
	return happened&(unix.POLLERR|unix.POLLHUP) != 0
}

// Writable reports whether f takes some bytes at once, or within the timeout. If it cannot tell, it returns true: then
// the write tells.
func Writable(f *os.File, timeout time.Duration) bool { return ready(f, unix.POLLOUT, timeout) }

// readable reports the same of reading from f.
func readable(f *os.File, timeout time.Duration) bool { return ready(f, unix.POLLIN, timeout) }

func ready(f *os.File, events int16, timeout time.Duration) bool {
	happened, err := poll(f, events, timeout)
	return happened != 0 || (err != nil && !errors.Is(err, unix.EINTR))
}

// IsForWriting reports whether a descriptor can only be written to.
func IsForWriting(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_WRONLY
}

// isNonblocking reports whether O_NONBLOCK is set, which whoever shares the stream may have done.
func isNonblocking(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_NONBLOCK != 0
}

func setBlocking(f *os.File) { _ = unix.SetNonblock(int(f.Fd()), false) }

// isNull reports whether a file is the null device, in whatever directory.
func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	one, ok := info.Sys().(*syscall.Stat_t)
	other, ok2 := null.Sys().(*syscall.Stat_t)
	return ok && ok2 && info.Mode().Type() == null.Mode().Type() && one.Rdev == other.Rdev
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// drain reads what is in the pipe, and does not wait for more. Everything that the process wrote before it ended is
// there.
func (c *capture) drain(buffer []byte) {
	raw, err := c.read.SyscallConn()
	if err != nil {
		return
	}
	for left := stateOf(c.read).available; left > 0; {
		n := 0
		err := raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), buffer[:min(left, len(buffer))]) })
		if n <= 0 || err != nil || !c.handle(buffer[:n]) {
			return
		}
		left -= n
	}
}

// kill kills a process, or a group if target is negative; 0 is none.
func kill(target int) {
	if target != 0 {
		_ = syscall.Kill(target, syscall.SIGKILL)
	}
}
