//go:build unix

package cli

import (
	"os"
	"syscall"
)

var forwarded = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

func raise(sig syscall.Signal) error {
	return syscall.Kill(os.Getpid(), sig)
}
