package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs what was written, without the file's times.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// writeOutSize takes a slow disk a tenth of a second.
const writeOutSize = 8 << 20

// writeOut has the disk write what is in the file, piece by piece. It reports false where it is given up: nobody can
// stop a sync, and a process that ends meanwhile waits for it. It promises nothing: a sync has to follow, which finds
// little left to do.
func writeOut(file *os.File, givenUp func() bool) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	for at := int64(0); at < info.Size(); at += writeOutSize {
		if givenUp() {
			return false
		}
		if writePiece(file, at) != nil {
			return true // the sync says why
		}
	}
	return !givenUp()
}

func writePiece(file *os.File, at int64) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	const wait = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	closed := raw.Control(func(fd uintptr) { err = unix.SyncFileRange(int(fd), at, writeOutSize, wait) })
	return errors.Join(closed, err)
}
