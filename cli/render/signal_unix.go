//go:build unix

package render

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func signalName(sig os.Signal) string {
	if n, ok := sig.(syscall.Signal); ok {
		if name := unix.SignalName(n); name != "" {
			return name
		}
	}
	return sig.String()
}
