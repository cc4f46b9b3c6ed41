package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData spares the disk what only dates the file.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
