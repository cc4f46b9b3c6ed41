package stdio

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const bytesAvailable = unix.TIOCINQ // the same as FIONREAD

// reopen opens a file again in the same mode, with an offset of its own.
func reopen(f *os.File) (*os.File, error) {
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), mode&(unix.O_ACCMODE|unix.O_APPEND), 0)
}

// activity counts what happens to a stream: writes, and its end. What came and was read at once shows neither to poll
// nor to epoll. So the system sends a signal for each event to a thread that blocks it and waits for it; real-time
// signals are queued, where two SIGIO would be one.
type activity struct {
	thread int
	events chan int
}

// manyEvents are as many as are counted: a write, and another one or the end.
const manyEvents = 2

// watchActivity counts what happens from now on.
func watchActivity(stream *os.File) *activity {
	a := &activity{events: make(chan int, 1)}
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread() // for ever: the thread ends together with the goroutine
		a.thread = unix.Gettid()
		err := unix.PthreadSigmask(unix.SIG_BLOCK, eventSignals(), nil)
		if err == nil {
			err = sendEvents(stream, a.thread)
		}
		close(ready)
		if err != nil {
			a.events <- manyEvents
			return
		}
		count := 0
		for asked := false; count < manyEvents; {
			switch sender := awaitSignal(!asked); {
			case sender == nobody:
				a.events <- count
				return
			case sender == ourselves:
				asked = true // and what has happened by now is counted
			default:
				count++
			}
		}
		_ = sendEvents(stream, 0)
		a.events <- count
	}()
	<-ready
	return a
}

// end stops counting and returns the count.
func (a *activity) end(stream *os.File) int {
	_ = unix.Tgkill(unix.Getpid(), a.thread, eventSignal)
	count := <-a.events
	_ = sendEvents(stream, 0)
	return count
}

// eventSignal is the last of the real-time signals. SIGIO comes instead where the queue is full.
const eventSignal = unix.Signal(64)

func eventSignals() *unix.Sigset_t {
	set := &unix.Sigset_t{}
	const bits = 8 * int(unsafe.Sizeof(set.Val[0]))
	for _, n := range []int{int(eventSignal), int(unix.SIGIO)} {
		set.Val[(n-1)/bits] |= 1 << ((n - 1) % bits)
	}
	return set
}

// sendEvents has the system send the signal to a thread when something happens to the stream; 0 ends that.
func sendEvents(stream *os.File, thread int) error {
	const toThread = 0 // F_OWNER_TID
	owner := [2]int32{toThread, int32(thread)}
	_, _, errno := unix.Syscall(unix.SYS_FCNTL, stream.Fd(), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
	if errno != 0 {
		return errno
	}
	mode, err := unix.FcntlInt(stream.Fd(), unix.F_GETFL, 0)
	signal := 0
	mode &^= unix.O_ASYNC
	if thread != 0 {
		signal = int(eventSignal)
		mode |= unix.O_ASYNC
	}
	if err == nil {
		_, err = unix.FcntlInt(stream.Fd(), unix.F_SETSIG, signal)
	}
	if err == nil {
		_, err = unix.FcntlInt(stream.Fd(), unix.F_SETFL, mode)
	}
	return err
}

// sender says who has sent a signal.
type sender int

const (
	nobody sender = iota
	ourselves
	stream
)

// awaitSignal takes one of the signals that this thread blocks, and may wait for one.
func awaitSignal(wait bool) sender {
	const size, sentByUs = 8, -6 // of the kernel's set of signals; SI_TKILL
	var info [32]int32           // a siginfo_t: the number, an error, and the code that tells the sender
	var timeout unsafe.Pointer
	if !wait {
		timeout = unsafe.Pointer(&unix.Timespec{})
	}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(eventSignals())),
			uintptr(unsafe.Pointer(&info)), uintptr(timeout), size, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return nobody
		case info[2] == sentByUs:
			return ourselves
		default:
			return stream
		}
	}
}

// peek returns a copy of what a pipe holds, or of its beginning, and leaves it there. It is nil for what is no pipe.
func peek(stream *os.File) []byte {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer func() { _ = read.Close() }()
	n, err := unix.Tee(int(stream.Fd()), int(write.Fd()), pipeCapacity, unix.SPLICE_F_NONBLOCK)
	_ = write.Close()
	if err != nil || n == 0 {
		return nil
	}
	content, err := io.ReadAll(read)
	if err != nil {
		return nil
	}
	return content
}
