// Package wake tells the processes that use a journal what has changed in it: this one by channels, others by datagrams on
// sockets in the directory of the journal.
package wake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/state"
)

// DirName is the directory of the sockets on which processes tell each other what has changed in the journal.
const DirName = "wake"

const (
	toldAtOnce  = 100 // changes in a datagram, some ten kilobytes
	largestTold = 64 << 10
	buffered    = 4096                   // changes that a slow listener may be behind before it is told that some are lost
	tellTimeout = 100 * time.Millisecond // for a socket whose buffer is full: it holds ten datagrams
	tellAgain   = time.Millisecond       // for one that was full before
	tellLost    = 200 * time.Millisecond // between two tries to tell it that it has missed something
	lookAgain   = time.Second            // where there are no sockets
	safetyLook  = 5 * time.Minute        // in case that a change was lost in spite of all
)

// Peers passes changes on: to the listeners of this process, and to the sockets of others.
type Peers struct {
	dir string

	mutex     sync.Mutex
	listeners map[chan state.Change]struct{}
	socket    *net.UnixConn // nil until somebody listens, and where the system has none
	file      string        // of the socket
	stop      context.CancelFunc
	group     sync.WaitGroup

	telling sync.Mutex
	sockets sockets
	behind  map[string]bool // sockets of other processes that have missed something
	again   *time.Timer     // to tell them so; nil where there are none
}

// New returns the peers of a journal's directory.
func New(dir string) *Peers {
	return &Peers{dir: dir, listeners: map[chan state.Change]struct{}{}, behind: map[string]bool{}}
}

// Listen returns a channel of all changes from now on. It is closed when ctx ends.
func (p *Peers) Listen(ctx context.Context) <-chan state.Change {
	changes := make(chan state.Change, buffered)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.listeners[changes] = struct{}{}
	if p.stop == nil {
		p.open()
	}
	context.AfterFunc(ctx, func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.listeners, changes)
		close(changes)
	})
	return changes
}

// open makes the socket of this process. Without one it looks at the journal each second.
func (p *Peers) open() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	again := safetyLook
	name := fmt.Sprintf("%d.%x", os.Getpid(), time.Now().UnixNano())
	if err := p.bind(name); err != nil {
		again = lookAgain
	} else {
		p.group.Go(p.receive)
	}
	p.group.Go(func() {
		for {
			select {
			case <-time.After(again):
				p.pass([]state.Change{{Lost: true, Precaution: again == safetyLook}})
			case <-ctx.Done():
				return
			}
		}
	})
}

func (p *Peers) bind(name string) error {
	dir := filepath.Join(p.dir, DirName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path, done := shortPath(dir, name)
	defer done()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	_ = os.Chmod(filepath.Join(dir, name), 0o600)
	p.socket, p.file = socket, filepath.Join(dir, name)
	return nil
}

// shortPath names a file in a directory in few bytes: the name of a socket has at most 104, or 108.
func shortPath(dir, name string) (path string, done func()) {
	const most = 100
	path = filepath.Join(dir, name)
	if len(path) <= most || runtime.GOOS != "linux" {
		return path, func() {}
	}
	d, err := os.Open(dir)
	if err != nil {
		return path, func() {}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name), func() { _ = d.Close() }
}

// receive passes on what others tell, until the socket is closed.
func (p *Peers) receive() {
	told := make([]byte, largestTold)
	for {
		n, err := p.socket.Read(told)
		if err != nil {
			return
		}
		var changes []state.Change
		if json.Unmarshal(told[:n], &changes) != nil {
			changes = []state.Change{{Lost: true}}
		}
		p.pass(changes)
	}
}

// pass gives changes to the listeners of this process. One that is too far behind loses all that it has not read, and is
// told so.
func (p *Peers) pass(changes []state.Change) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for listener := range p.listeners {
		for _, c := range changes {
			select {
			case listener <- c:
				continue
			default:
			}
			for len(listener) > 0 {
				select {
				case <-listener:
				default:
				}
			}
			listener <- state.Change{Lost: true}
		}
	}
}

// Tell gives changes to everybody.
func (p *Peers) Tell(changes []state.Change) {
	if len(changes) == 0 {
		return
	}
	p.pass(changes)
	p.mutex.Lock()
	own := p.file
	p.mutex.Unlock()
	p.telling.Lock()
	defer p.telling.Unlock()
	p.sockets.tell(p.dir, own, changes, p.behind)
	if p.again == nil && len(p.behind) > 0 {
		p.again = time.AfterFunc(tellLost, p.tellLost)
	}
}

// tellLost tells the processes that stood still, once they go on, that they have missed something.
func (p *Peers) tellLost() {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.again = nil
	for name := range p.behind {
		tellBehind(filepath.Join(p.dir, DirName), name, p.behind)
	}
	if len(p.behind) > 0 {
		p.again = time.AfterFunc(tellLost, p.tellLost)
	}
}

// Close removes the socket. The channels of listeners stay open until their contexts end.
func (p *Peers) Close() {
	p.mutex.Lock()
	stop, socket := p.stop, p.socket
	p.mutex.Unlock()
	p.telling.Lock()
	clear(p.behind)
	p.telling.Unlock()
	if stop == nil {
		return
	}
	stop()
	if socket != nil {
		_ = socket.Close()
		_ = os.Remove(p.file)
	}
	p.group.Wait()
}

// TellOthers tells every process that listens, for one that does so once.
func TellOthers(dir string, changes []state.Change) { new(sockets).tell(dir, "", changes, nil) }

// sockets are the names in the directory of the sockets, as they were read last.
type sockets struct {
	names   []string
	changed time.Time // when the directory had changed; zero where it must be read again
}

// clockTick is longer than the time in which a directory may change again without another modification time.
const clockTick = 100 * time.Millisecond

// read lists the directory where it has changed: a busy process tells a thousand times a second.
func (s *sockets) read(dir string) []string {
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	if changed := info.ModTime(); s.changed.IsZero() || !changed.Equal(s.changed) {
		entries, _ := os.ReadDir(dir)
		s.names, s.changed = s.names[:0], time.Time{}
		for _, entry := range entries {
			s.names = append(s.names, entry.Name())
		}
		if time.Since(changed) > clockTick {
			s.changed = changed
		}
	}
	return s.names
}

// tell sends changes to the sockets of other processes. One that nobody has open is removed. behind remembers, of a
// process that tells often, who has missed something: nobody waits for them once more, and they are told so.
func (s *sockets) tell(dir, own string, changes []state.Change, behind map[string]bool) {
	dir = filepath.Join(dir, DirName)
	names := s.read(dir)
	if len(names) == 0 || len(names) == 1 && filepath.Join(dir, names[0]) == own {
		return
	}
	var datagrams [][]byte
	for rest := changes; len(rest) > 0; rest = rest[min(toldAtOnce, len(rest)):] {
		if text, err := json.Marshal(rest[:min(toldAtOnce, len(rest))]); err == nil {
			datagrams = append(datagrams, text)
		}
	}
	for _, name := range names {
		switch {
		case filepath.Join(dir, name) == own || strings.HasPrefix(name, "."):
		case behind[name]:
			tellBehind(dir, name, behind)
		case !tellOne(dir, name, datagrams, tellTimeout) && behind != nil:
			behind[name] = true
		}
	}
}

// tellBehind tells a process that was behind that something is lost.
func tellBehind(dir, name string, behind map[string]bool) {
	if tellOne(dir, name, [][]byte{[]byte(`[{"Lost":true}]`)}, tellAgain) {
		delete(behind, name)
	}
}

// tellOne sends datagrams to a process. It reports false where their reader stands still.
func tellOne(dir, name string, datagrams [][]byte, timeout time.Duration) (told bool) {
	path, done := shortPath(dir, name)
	defer done()
	socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(filepath.Join(dir, name))
	}
	if err != nil {
		return true
	}
	defer func() { _ = socket.Close() }()
	_ = socket.SetWriteDeadline(time.Now().Add(timeout))
	for _, text := range datagrams {
		if _, err := socket.Write(text); err != nil {
			return false
		}
	}
	return true
}
