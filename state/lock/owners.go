package lock

import (
	"bytes"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// OwnersFile is the file in the directory that holds the locks of owners.
const OwnersFile = "owners.lock"

// queueLock is the number of the writers' lock, between those of the tasks and those of the names.
const queueLock = 1 << 61

// Worker returns the number of a worker's lock.
func Worker(number int64) int64 { return 1<<60 | number }

// Hook returns the number of the lock of a hook that a worker runs after an attempt of a task.
func Hook(number int64) int64 { return 1<<59 | number }

// Operation returns the number of the lock of an operation. No task has such a name.
func Operation(id string) int64 { return Name("operation\x00" + id) }

// UnknownPID stands for a living process whose pid the system does not tell.
const UnknownPID = -1

// Owners holds the kernel locks of the owners: byte N of one file is task number N. The kernel releases the locks of a
// process that dies, and unlike a stored pid, a lock never means another process.
type Owners struct {
	file   *os.File
	own    sync.Map   // the numbers that this process has, since the system does not tell it
	mutex  sync.Mutex // of closed
	closed bool       // nothing is to be released any more
}

// Has reports whether this process owns a number by these locks.
func (o *Owners) Has(number int64) bool {
	_, has := o.own.Load(number)
	return has
}

// OpenOwners opens the locks of a directory whose files exist.
func OpenOwners(dir string) (*Owners, error) {
	f, err := os.OpenFile(filepath.Join(dir, OwnersFile), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Owners{file: f}, nil
}

// In reports whether these are the locks in a directory: opening and closing that file once more would release every
// lock that this process holds.
func (o *Owners) In(dir string) bool {
	own, err := o.file.Stat()
	other, failed := os.Stat(filepath.Join(dir, OwnersFile))
	return err == nil && failed == nil && os.SameFile(own, other)
}

// Close releases every lock that this process holds.
func (o *Owners) Close() error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.closed = true
	return o.file.Close()
}

// OpenOwnersReadOnly opens the locks for Owner alone, which needs no right to write. It returns nil if there is no
// file.
func OpenOwnersReadOnly(dir string) (*Owners, error) {
	o, err := OpenOwners(dir)
	if err == nil {
		return o, nil
	}
	f, err := os.Open(filepath.Join(dir, OwnersFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &Owners{file: f}, err
}

// Name returns the number of a name's lock, far above those of all tasks.
func Name(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return 1<<62 | int64(h.Sum64()>>2)
}

// The file of the locks also holds notes, in slots that the tasks share: a lock says nothing of the bytes under it.
const (
	noteSize  = 512
	noteSlots = 256
)

func noteOffset(number int64) int64 { return number % noteSlots * noteSize }

// Note writes a text for a number, in place of the one of any number with the same slot. A text that is too long, or
// cannot be written, is lost.
func (o *Owners) Note(number int64, key, text string) {
	note := append(make([]byte, 0, noteSize), key+"\n"+text...)
	if len(note) < noteSize {
		_, _ = o.file.WriteAt(note[:noteSize], noteOffset(number))
	}
}

// Noted returns what was written last for a number, or for another one with the same slot; empty if nothing was.
func (o *Owners) Noted(number int64) (key, text string) {
	note := make([]byte, noteSize)
	n, _ := o.file.ReadAt(note, noteOffset(number))
	key, text, _ = strings.Cut(string(bytes.TrimRight(note[:n], "\x00")), "\n")
	return key, text
}
