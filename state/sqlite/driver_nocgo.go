//go:build !cgo

package sqlite

import (
	"syscall"
)

// CheckDriver fails at once: without cgo, the SQLite driver would fail at its first query.
func CheckDriver() error { return ErrNoCgo }

func isBusy(error) bool { return false }

func sqliteKind(error) error { return nil }

func sqliteErrno(error) (syscall.Errno, bool) { return 0, false }

func (c *conn) keepWAL() {}

func Version() string { return "none" }
