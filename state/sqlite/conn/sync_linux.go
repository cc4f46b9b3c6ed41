package conn

import (
	"errors"
	"os"
	"syscall"
)

// SyncData waits until the disk holds the content of a file and the length that it has. Unlike File.Sync it does not
// wait for the file's times, which costs another write where a WAL is overwritten in place.
func SyncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
