package spool

import (
	"errors"
	"os"
	"syscall"
)

const (
	spliceNonblock = 2       // SPLICE_F_NONBLOCK of <fcntl.h>
	spliceMost     = 1 << 20 // what a pipe holds at most, unless root has raised that
)

// toPipe writes some of what a file holds from an offset on, at most so many bytes, to a pipe: the pages of the file go there, and no
// copy of them is made. It waits for room, as a write does.
func toPipe(file *os.File, offset int64, pipe *os.File, most int64) (n int, err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	waited := raw.Write(func(fd uintptr) bool {
		n, err = splice(file, offset, fd, int(min(most, spliceMost)))
		return !errors.Is(err, syscall.EAGAIN)
	})
	if waited != nil {
		return 0, waited
	}
	return n, err
}

func splice(file *os.File, offset int64, pipe uintptr, most int) (n int, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Control(func(fd uintptr) { n, err = spliceDescriptors(int(fd), offset, int(pipe), most) })
	return n, errors.Join(closed, err)
}

func spliceDescriptors(file int, offset int64, pipe, most int) (int, error) {
	flags := 0
	if mode, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(pipe), syscall.F_GETFL, 0); mode&syscall.O_NONBLOCK != 0 {
		flags = spliceNonblock // older kernels heed only this; and it is Go that waits for such a pipe, since it hears of its end
	}
	for {
		n, err := syscall.Splice(file, &offset, pipe, nil, most, flags)
		if !errors.Is(err, syscall.EINTR) {
			return max(0, int(n)), os.NewSyscallError("splice", err)
		}
	}
}
