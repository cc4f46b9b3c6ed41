//go:build unix

package cmdexec

import (
	"os"

	"golang.org/x/sys/unix"
)

// Interactive reports whether stdin is a terminal whose foreground group is ours: then Ctrl-C, Ctrl-Z and prompts work only
// for a child in that same group.
func Interactive(stdin *os.File) bool {
	group, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
