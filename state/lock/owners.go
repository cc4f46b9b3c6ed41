package lock

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
)

// OwnersFile is the file in the directory that holds the locks of owners.
const OwnersFile = "owners.lock"

// queueLock is the lock that writers queue for, between those of the tasks and those of the names.
const queueLock = 1 << 61

// UnknownPID stands for a living process of which the system tells no more.
const UnknownPID = -1

// Owners holds the kernel locks that say which tasks have a living owner: byte N of one file is task number N. The
// kernel drops the locks of a process that dies, whatever killed it, and confuses no two processes as process ids can.
type Owners struct {
	file *os.File
}

// OpenOwners opens the locks of a directory whose files exist.
func OpenOwners(dir string) (*Owners, error) {
	f, err := os.OpenFile(filepath.Join(dir, OwnersFile), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Owners{file: f}, nil
}

// Close releases every lock that this process holds.
func (o *Owners) Close() error {
	return o.file.Close()
}

// OpenOwnersReadOnly opens the locks to be asked, which needs no right to write. It returns nil where nobody has ever
// owned a task.
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
