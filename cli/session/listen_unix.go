//go:build unix

package session

import (
	"fmt"
	"syscall"
)

// leastDescriptors are what a run without a journal needs to start a command.
const leastDescriptors = 9

// CheckDescriptors refuses a limit of open files under which nothing can be started. Go's runtime aborts with a dump if
// it gets none for its poller.
func CheckDescriptors() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= leastDescriptors {
		return nil
	}
	return fmt.Errorf("%d file descriptors are too few to start a command"+
		"\nhint: raise the limit with ulimit -n", limit.Cur)
}

// descriptors is how many files this process may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<30))
}

var forwarded = []syscall.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// WakeSignal has a retry that waits look into its journal. A command that gets it instead ignores it, unless it draws
// on a terminal, and then it draws again.
const WakeSignal = syscall.SIGWINCH

// inheritable are the signals that people ignore for a command. Go's runtime needs some of the others for itself.
var inheritable = append([]syscall.Signal{
	syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGXFSZ,
	syscall.SIGXCPU, syscall.SIGVTALRM, syscall.SIGIO,
}, forwarded...)
