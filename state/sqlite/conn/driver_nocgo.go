//go:build !cgo

package conn

import (
	"syscall"
)

// CheckDriver fails at once: without cgo, the SQLite driver would fail at its first query.
func CheckDriver() error { return ErrNoCgo }

// IsBusy reports nothing here.
func IsBusy(error) bool { return false }

func sqliteKind(error) error { return nil }

func sqliteErrno(error) (syscall.Errno, bool) { return 0, false }

// KeepWAL does nothing here.
func (c *Conn) KeepWAL() {}

// Version returns that there is no SQLite.
func Version() string { return "none" }
