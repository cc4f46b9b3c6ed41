package sqlite

import (
	"os"
	"path/filepath"
)

// owners holds the kernel locks that say which tasks have a living owner: byte N of one file is task number N. A process
// that dies lets go of its bytes, whatever killed it, and none can be confused with another as process ids can.
type owners struct {
	file *os.File
}

// unknownPID stands for an owner of which the system tells no more than that it lives.
const unknownPID = -1

func openOwners(dir string) (*owners, error) {
	f, err := os.OpenFile(filepath.Join(dir, ownersName), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &owners{file: f}, nil
}

func (o *owners) close() error {
	return o.file.Close()
}
