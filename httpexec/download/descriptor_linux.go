package download

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrDescriptor says that a name stands for an open file that retry did not inherit.
var ErrDescriptor = errors.New("there is no open file of this number")

// descriptorOf returns the number that /dev/stdout and its like come down to; -1 for another name. What we opened
// ourselves, the journal above all, is none of the user's: unlike what we inherited, it is not for the programs that we
// start.
func descriptorOf(path string) (int, error) {
	name, ours := strings.CutPrefix(path, "/proc/self/fd/")
	if !ours {
		if name, ours = strings.CutPrefix(path, "/dev/fd/"); !ours {
			return -1, nil
		}
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		return -1, ErrDescriptor
	}
	flags, err := control(n, syscall.F_GETFD)
	if err != nil || n > 2 && flags&syscall.FD_CLOEXEC != 0 {
		return -1, ErrDescriptor
	}
	return n, nil
}

// Inherited returns a duplicate of a descriptor that retry inherited, with the same position; nil where it cannot be
// written to.
func Inherited(path string) *os.File {
	n, err := descriptorOf(path)
	if n < 0 || err != nil {
		return nil
	}
	mode, err := control(n, syscall.F_GETFL)
	if err != nil || mode&syscall.O_ACCMODE == syscall.O_RDONLY {
		return nil
	}
	another, err := control(n, syscall.F_DUPFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(another), path)
}

func control(n, command int) (int, error) {
	result, _, number := syscall.Syscall(syscall.SYS_FCNTL, uintptr(n), uintptr(command), 0)
	if number != 0 {
		return 0, number
	}
	return int(result), nil
}
