//go:build cgo

package state

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// CheckDriver returns ErrNoCgo where the binary was built without SQLite.
func CheckDriver() error { return nil }

// isBusy reports that another process holds a lock that this one needs.
func isBusy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}
