//go:build unix

package proc

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Interactive reports whether a stream is a terminal and our group is in its foreground. Only then do Ctrl-C, Ctrl-Z
// and prompts work for a child in our group.
func Interactive(stream *os.File) bool {
	group, err := unix.IoctlGetInt(int(stream.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// OnTerminal reports whether a stream is our controlling terminal, whichever group is in its foreground.
func OnTerminal(stream *os.File) bool {
	_, err := unix.IoctlGetInt(int(stream.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// InForeground reports whether our group is in the foreground of our controlling terminal.
func InForeground() bool {
	inForeground := false
	withTerminal(func(terminal *os.File) { inForeground = Interactive(terminal) })
	return inForeground
}

// isForeground reports whether a process group is in the foreground of our controlling terminal.
func isForeground(group int) bool {
	foreground := 0
	withTerminal(func(terminal *os.File) { foreground, _ = unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP) })
	return foreground == group
}

// hasTerminal reports whether we have a controlling terminal.
func hasTerminal() bool {
	return withTerminal(func(*os.File) {})
}

// withTerminal calls do with our controlling terminal. It returns false if there is none.
func withTerminal(do func(*os.File)) bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	do(terminal)
	return terminal.Close() == nil
}

// SaveTerminal reads the settings of the terminal before the process uses it. The function that it returns sets them
// again, as a shell does after a command that died of a signal and could not tidy up.
func (p *Process) SaveTerminal() (restore func()) {
	if !p.shared || !p.onTerminal() {
		return nothing
	}
	var state *term.State
	withTerminal(func(terminal *os.File) { state, _ = term.GetState(int(terminal.Fd())) })
	if state == nil {
		return nothing
	}
	return func() {
		if p.onTerminal() {
			withTerminal(func(terminal *os.File) { _ = term.Restore(int(terminal.Fd()), state) })
		}
	}
}
