//go:build unix

package access

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lockWait is how long a server waits for others that start.
const lockWait = time.Second

// lockDirectory keeps other servers from replacing a dead socket in a directory: of two that start at once, one would
// remove the socket of the other, which is not listening yet. It does nothing where it cannot.
func lockDirectory(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	for end := time.Now().Add(lockWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			break
		}
	}
	return func() { _ = f.Close() }
}

// checkPrivate refuses a file that belongs to another user than us and root, or that others may read or change.
func checkPrivate(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, so that others may use it\nhint: chmod 600 %s", path, mode, path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		hint := fmt.Sprintf("chown %d %s", os.Geteuid(), path)
		if os.Geteuid() == 0 { // then its server could not read it
			hint = fmt.Sprintf("do this as its owner: sudo -u '#%d' retry ...", stat.Uid)
		}
		return fmt.Errorf("%s belongs to the user %d\nhint: %s", path, stat.Uid, hint)
	}
	return nil
}
