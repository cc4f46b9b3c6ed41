package cmdexec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const bytesAvailable = unix.TIOCINQ // FIONREAD

// reopen opens a file again, with an offset of its own.
func reopen(f *os.File) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}
