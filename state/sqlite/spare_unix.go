//go:build unix

package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/state"
)

const (
	// spareDescriptors are the journal's eight, with Go's poller, and twelve for the command's pipes, its kept streams, and what the
	// system opens to start it.
	spareDescriptors = 20
	plenty           = 64
)

// checkSpare refuses a journal that would leave too few file descriptors to start a command: that goes before being written down.
func checkSpare() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil
	}
	lowest, err := duplicate()
	if err == nil {
		_ = unix.Close(lowest)
		if uint64(lowest)+plenty < uint64(limit.Cur) { //nolint:unconvert // it is signed on some systems
			return nil
		}
	}
	if n := countSpare(); n < spareDescriptors {
		return &state.Fault{
			Kind: state.ErrNoFiles, Err: fmt.Errorf("%d of %d file descriptors are left, too few for it and a command", n, limit.Cur),
			Hint: hintFor(state.ErrNoFiles, ""),
		}
	}
	return nil
}

// countSpare counts to spareDescriptors.
func countSpare() int {
	var taken []int
	defer func() {
		for _, fd := range taken {
			_ = unix.Close(fd)
		}
	}()
	for len(taken) < spareDescriptors {
		fd, err := duplicate()
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	return len(taken)
}

// duplicate copies stderr, which is always open, and no file of the journal: closing a copy of one would drop our locks on it.
func duplicate() (int, error) {
	return unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, 0)
}
