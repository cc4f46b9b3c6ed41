package stdio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	bytesAvailable = unix.TIOCINQ // the same as FIONREAD
	getTermios     = unix.TCGETS
	peerShutDown   = unix.POLLRDHUP
)

// reopen opens a file again in the same mode, with an offset of its own.
func reopen(f *os.File) (*os.File, error) {
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(fdPath(f), mode&(unix.O_ACCMODE|unix.O_APPEND), 0)
}

// openAgain opens a pipe for reading that does not wait.
func openAgain(f *os.File) (*os.File, error) {
	return os.OpenFile(fdPath(f), os.O_RDONLY|unix.O_NONBLOCK, 0)
}

func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// takenSignal says that a stream is taken. It is the signal that the kernel would send of it if somebody asked for
// signals: SIGIO, as it does without a setting, which reads as 0. It belongs to the open stream, whatever descriptor
// leads there, and ends with that: so it holds for lines without a name or a journal, too.
const takenSignal = int(unix.SIGIO)

// setTaken notes that a retry has read from a stream, or no longer. Where that cannot be noted, as where somebody has
// asked for signals, the next one is not refused.
func setTaken(f *os.File, taken bool) {
	from, to := takenSignal, 0
	if taken {
		from, to = to, from
	}
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	signal, err2 := unix.FcntlInt(f.Fd(), unix.F_GETSIG, 0)
	if err == nil && err2 == nil && mode&unix.O_ASYNC == 0 && signal == from {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETSIG, to)
	}
}

func isTaken(f *os.File) bool {
	signal, err := unix.FcntlInt(f.Fd(), unix.F_GETSIG, 0)
	return err == nil && signal == takenSignal
}

// isLocked reports whether a lock was taken through the file, with flock for example.
func isLocked(f *os.File) bool {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	return err == nil && bytes.Contains(info, []byte("\nlock:"))
}

// hasName reports whether a pipe is a FIFO in a directory. Processes that did not inherit it can open it.
func hasName(f *os.File) bool {
	path, err := os.Readlink(fdPath(f))
	return err == nil && strings.HasPrefix(path, "/")
}

// wasReset reports whether a TCP connection was reset. Who reads it first gets the error; the next one finds an end.
func wasReset(f *os.File) (reset bool) {
	const closed = 7 // TCP_CLOSE; after an orderly end it is TCP_CLOSE_WAIT
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO)
		reset = err == nil && info.State == closed
	})
	return reset
}

// readWatch tells whether a stream is read, by whomever. Several retry can watch the same one.
type readWatch struct {
	stream *os.File
	socket bool // of Unix; the rest is for one
	offset int  // its peek offset at the last look; negative if it is not known
	ours   bool // we have set the offset

	pipe    *os.File    // of a pipe: a descriptor of our own, whose signals no other process takes over
	named   bool        // it is a FIFO: after its end, another writer may come
	events  *activity   // while an attempt runs
	access  int         // an inotify of the reads of a pipe that holds little; 0 of any other, -1 where there is none
	before  streamState // of the pipe, when it began
	content []byte
	missed  bool // something came before the events were counted
	blind   bool // another retry gets the events, by the same descriptor
	open    func(os.FileInfo) bool
	left    bool // something may read it until the next attempt, so that the events are counted until then
}

// watchReads prepares to watch a stream.
func watchReads(stream *os.File) *readWatch {
	w := &readWatch{stream: stream}
	switch domain, err := unix.GetsockoptInt(int(stream.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN); {
	case err == nil: // another kind is rare, and a program that peeks at it would find nothing
		w.socket = domain == unix.AF_UNIX
		w.countBytes()
	default:
		w.named = hasName(stream)
		w.pipe = stream // if it belongs to another user
		if f, err := openAgain(stream); err == nil {
			w.pipe = f
		}
	}
	return w
}

const (
	peekOffset   = 1 << 30
	comparedSize = 4 << 10 // of what is at the beginning of a pipe
)

// countBytes has the kernel count what is read from a socket: it lowers the peek offset by that, down to 0, unless the
// offset is -1, as it usually is. So this sets one that is far beyond what a socket holds. It never raises one that was
// lowered: this attempt, or that of an outer retry, would look as if it had read less. It returns false if nothing was
// counted since the last call: another retry that had the socket has ended, and the offset with it.
func (w *readWatch) countBytes() bool {
	w.offset = -1
	if !w.socket {
		return false
	}
	offset, err := unix.GetsockoptInt(int(w.stream.Fd()), unix.SOL_SOCKET, unix.SO_PEEK_OFF)
	counted := err == nil && offset >= 0
	if err == nil && !counted {
		err = unix.SetsockoptInt(int(w.stream.Fd()), unix.SOL_SOCKET, unix.SO_PEEK_OFF, peekOffset)
		offset, w.ours = peekOffset, err == nil
	}
	if err == nil {
		w.offset = offset
	}
	return counted
}

// begin begins to watch an attempt, and returns the state of the stream then.
func (w *readWatch) begin() streamState {
	if w.pipe == nil {
		return stateOf(w.stream)
	}
	w.before = stateOf(w.stream)
	if w.before.ended && !w.named {
		return w.before // the number of its bytes tells all
	}
	if w.blind = w.pipe == w.stream && w.events == nil && isWatched(w.stream); w.blind {
		return w.before
	}
	w.missed = true // else something came before it was counted, and is counted or not
	for tries := 0; w.missed && tries < 10; tries++ {
		w.endEvents()
		w.before, w.content = stateOf(w.stream), peek(w.pipe)
		w.content = w.content[:min(len(w.content), comparedSize)]
		w.events = watchActivity(w.pipe, w.before.available)
		w.missed = stateOf(w.stream) != w.before
	}
	if 0 < w.before.available && w.before.available < comparedSize {
		w.access = watchAccess(w.pipe)
	}
	return w.before
}

// endEvents returns what has watched until now; nil if nothing has.
func (w *readWatch) endEvents() *activity {
	events := w.events
	if events != nil {
		events.end(w.pipe)
		w.events = nil
	}
	if w.access > 0 {
		_ = unix.Close(w.access)
	}
	w.access = 0
	return events
}

// seen reports whether the stream may have been read since begin, and whether that is known. later is its state.
func (w *readWatch) seen(later streamState) (read, known bool) {
	switch {
	case w.pipe == nil:
		before := w.offset
		counted := w.countBytes()
		known = before > 0 && counted // at 0 it does not fall
		return known && w.offset < before, known
	case w.events == nil:
		return false, !w.blind
	}
	// What is short, such as a line, may have been read, and have come again. What is long has not come again, while a
	// nested retry may have looked at it.
	again := w.accessed()
	watched, happened := w.events, events{}
	if w.left {
		happened, w.left = watched.soFar(), false
	} else {
		happened = w.endEvents().events
	}
	written := w.missed || happened.count > 1 || happened.count == 1 && !later.ended // the end counts, too
	unread := !again && later.available > w.before.available && startsOnlyWith(peek(w.pipe), w.content)
	return watched.read.Load() || written && !unread, !happened.lost || unread
}

// wait has a pipe watched until the next attempt, where the last one has left a process that may read it meanwhile:
// that has the pipe open. It comes before the look at what the attempt has read: a process that has ended by now was
// seen by the watch of the attempt. A socket is watched anyway.
func (w *readWatch) wait(open func(os.FileInfo) bool) {
	w.open = open
	w.left = w.events != nil && w.shared()
}

// shared reports whether what an attempt has left may read from the pipe beside the next one.
func (w *readWatch) shared() bool {
	if w.open == nil || !w.named && stateOf(w.stream) == (streamState{ended: true}) {
		return false
	}
	info, err := w.stream.Stat()
	return err == nil && w.open(info)
}

// startsOnlyWith reports whether a stream that began with text still does. Where text comes twice, such as in zeros,
// the first one may have been read.
func startsOnlyWith(now, text []byte) bool {
	return len(text) > 0 && bytes.HasPrefix(now, text) && !bytes.Contains(now[1:], text)
}

// watchAccess returns an inotify of the reads of a stream; -1 where there is none, since it belongs to another user, or
// this one has too many. It does not tell who has read, nor how much.
func watchAccess(stream *os.File) int {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return -1
	}
	if _, err := unix.InotifyAddWatch(fd, fdPath(stream), unix.IN_ACCESS|unix.IN_OPEN|unix.IN_CLOSE_NOWRITE); err != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// aLook is what peek does, as an inotify tells it: it opens the pipe and closes it, opens it again, looks and closes
// it. A command that opens /dev/stdin does so once.
const aLook = "ocoac"

// accessed reports whether somebody may have read a pipe that held little since begin. What retry has done itself, or
// one that is nested in the attempt, is no read.
func (w *readWatch) accessed() bool {
	if w.access <= 0 {
		return w.access < 0
	}
	var seen []byte
	for buffer := make([]byte, 256*unix.SizeofInotifyEvent); ; {
		n, err := unix.Read(w.access, buffer)
		if err != nil || n <= 0 {
			return strings.Contains(strings.ReplaceAll(string(seen), aLook, ""), "a")
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent { // these events have no name
			switch mask := binary.NativeEndian.Uint32(buffer[at+4:]); {
			case mask&unix.IN_OPEN != 0:
				seen = append(seen, 'o')
			case mask&unix.IN_CLOSE_NOWRITE != 0:
				seen = append(seen, 'c')
			default: // IN_ACCESS, or too many of all
				seen = append(seen, 'a')
			}
		}
	}
}

// end ends the watch.
func (w *readWatch) end() {
	w.endEvents()
	if w.pipe != nil && w.pipe != w.stream {
		_ = w.pipe.Close()
	}
	if w.ours {
		_ = unix.SetsockoptInt(int(w.stream.Fd()), unix.SOL_SOCKET, unix.SO_PEEK_OFF, -1)
	}
}

// peek returns a copy of what a pipe holds, or of its beginning, and leaves it there. It is nil for what is no pipe.
func peek(stream *os.File) []byte {
	if first, err := openAgain(stream); err == nil { // see aLook
		_ = first.Close()
		if own, err := openAgain(stream); err == nil {
			stream = own
			defer func() { _ = own.Close() }()
		}
	}
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
