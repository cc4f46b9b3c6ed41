package stdio

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// activity tells what happens to a pipe: writes, its end, and reads. What came and was read at once shows neither to
// poll nor to epoll. So the system sends a signal for each write to a thread that blocks it and waits for it; real-time
// signals are queued, where two SIGIO would be one. A read sends no signal to a reader. So the thread looks from time to
// time how much the pipe holds: an amount that shrinks is a read.
type activity struct {
	thread int
	ended  chan struct{}
	events             // when it has ended
	until  chan events // those up to now, where it is asked for them
	read   atomic.Bool // somebody has read
	asked  atomic.Bool // it is to end, or to send the events
	ending atomic.Bool // it is to end
}

type events struct {
	count int  // of writes, and of the end
	lost  bool // some were not counted: this user has as many signals queued as the limit allows
}

// manyEvents are as many as are counted: two tell all, and each of the others makes the thread look once more.
const manyEvents = 64

// The thread looks often at first, since most attempts are short, and less often later.
const (
	firstInterval = time.Millisecond
	lastInterval  = 50 * time.Millisecond
)

// watchActivity watches from now on a pipe that holds some bytes. One that is empty is not looked at: there, whatever
// comes may have been read.
func watchActivity(pipe *os.File, held int) *activity {
	a := &activity{ended: make(chan struct{}), until: make(chan events)}
	ready := make(chan struct{})
	go func() {
		defer close(a.ended)
		runtime.LockOSThread() // for ever: the thread ends together with the goroutine
		a.thread = unix.Gettid()
		err := unix.PthreadSigmask(unix.SIG_BLOCK, eventSignals(), nil)
		if err == nil {
			err = sendEvents(pipe, a.thread)
		}
		close(ready)
		if err != nil {
			a.count = manyEvents
			return
		}
		a.follow(pipe, held)
	}()
	<-ready
	return a
}

// follow takes the signals until this process sends one to end it. What has happened by then is counted.
func (a *activity) follow(pipe *os.File, held int) {
	interval := firstInterval
	for asked := false; ; {
		timeout := interval
		switch {
		case asked:
			timeout = 0
		case held == 0 || a.read.Load(): // there is nothing to look for
			timeout = -1
		}
		switch awaitSignal(timeout) {
		case nobody:
			switch {
			case asked && a.ending.Load():
				return
			case asked:
				asked = false
				a.asked.Store(false)
				a.until <- a.events
			}
			interval = min(2*interval, lastInterval)
		case ourselves:
			asked = true
		case unknownSender:
			a.lost, asked = true, a.asked.Load()
		case stream:
			if a.count++; a.count == manyEvents {
				_ = sendEvents(pipe, 0)
			}
		}
		if held > 0 {
			before := held
			held, _ = unix.IoctlGetInt(int(pipe.Fd()), bytesAvailable)
			if held < before {
				a.read.Store(true)
			}
		}
	}
}

// end ends the watch.
func (a *activity) end(pipe *os.File) {
	a.ending.Store(true)
	a.ask()
	<-a.ended
	_ = sendEvents(pipe, 0)
}

// soFar returns what has happened until now. The watch goes on.
func (a *activity) soFar() events {
	a.ask()
	select {
	case now := <-a.until:
		return now
	case <-a.ended: // it could not begin
		return a.events
	}
}

// ask uses SIGIO as the kernel does where no more real-time signals can be queued.
func (a *activity) ask() {
	a.asked.Store(true)
	if err := unix.Tgkill(unix.Getpid(), a.thread, eventSignal); err != nil {
		_ = unix.Tgkill(unix.Getpid(), a.thread, unix.SIGIO)
	}
}

// eventSignal is the last of the real-time signals. SIGIO comes instead where the queue is full: once for several, and
// without its sender.
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

// isWatched reports whether another process gets the signals of a stream.
func isWatched(stream *os.File) bool {
	mode, err := unix.FcntlInt(stream.Fd(), unix.F_GETFL, 0)
	if err != nil || mode&unix.O_ASYNC == 0 {
		return false
	}
	var owner [2]int32 // its kind and its number, which is 0 where it has died
	_, _, errno := unix.Syscall(unix.SYS_FCNTL, stream.Fd(), unix.F_GETOWN_EX, uintptr(unsafe.Pointer(&owner)))
	return errno == 0 && owner[1] != 0
}

// sender says who has sent a signal.
type sender int

const (
	nobody sender = iota
	ourselves
	stream
	unknownSender // of a SIGIO
)

// awaitSignal takes one of the signals that this thread blocks. It waits for one up to the timeout, or for ever if that
// is negative.
func awaitSignal(timeout time.Duration) sender {
	const size, sentByUs = 8, -6 // of the kernel's set of signals; SI_TKILL
	var info [32]int32           // a siginfo_t: the number, an error, and the code that tells the sender
	var limit *unix.Timespec
	if timeout >= 0 {
		most := unix.NsecToTimespec(timeout.Nanoseconds())
		limit = &most
	}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(eventSignals())),
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(limit)), size, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return nobody
		case info[0] == int32(unix.SIGIO):
			return unknownSender
		case info[2] == sentByUs:
			return ourselves
		default:
			return stream
		}
	}
}
