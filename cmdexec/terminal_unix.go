//go:build unix

package cmdexec

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Interactive reports whether stdin is a terminal whose foreground group is ours: then Ctrl-C, Ctrl-Z and prompts work only
// for a child in that same group.
func Interactive(stdin *os.File) bool {
	group, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// OnTerminal reports whether a stream is our controlling terminal, whichever group is in its foreground now.
func OnTerminal(stream *os.File) bool {
	_, err := unix.IoctlGetInt(int(stream.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// hasTerminal reports whether we have a controlling terminal.
func hasTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return terminal.Close() == nil
}

// InForeground reports whether our group is the foreground group of a terminal, whatever stdin is.
func InForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }()
	return Interactive(terminal)
}

// saveTerminal notes how the terminal is set before the process uses it. The function that it returns sets it so again, as a shell
// does after a command that a signal ended: such a command has not tidied up.
func (p *process) saveTerminal() (restore func()) {
	if !p.shared || !p.onTerminal() {
		return nothing
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return nothing
	}
	defer func() { _ = terminal.Close() }()
	state, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		return nothing
	}
	return func() {
		terminal, err := os.Open("/dev/tty")
		if err != nil || !p.onTerminal() {
			return
		}
		_ = term.Restore(int(terminal.Fd()), state)
		_ = terminal.Close()
	}
}
