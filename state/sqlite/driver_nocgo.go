//go:build !cgo

package sqlite

import (
	"syscall"
)

// CheckDriver fails: without cgo the SQLite driver is an empty shell that would fail at the first query only.
func CheckDriver() error { return ErrNoCgo }

func isBusy(error) bool { return false }

func sqliteKind(error) error { return nil }

func sqliteErrno(error) (syscall.Errno, bool) { return 0, false }

func Version() string { return "none" }
