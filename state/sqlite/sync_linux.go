package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs a file's content without its times.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
