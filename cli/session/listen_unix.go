//go:build unix

package session

import (
	"syscall"
)

var forwarded = []syscall.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// inheritable are the signals that people ignore for a command. Go's runtime needs some of the others for itself.
var inheritable = append([]syscall.Signal{
	syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGXFSZ,
}, forwarded...)
