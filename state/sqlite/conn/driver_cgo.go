//go:build cgo

package conn

import (
	"errors"
	"strings"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"github.com/10f93571/retry/state"
)

// CheckDriver returns ErrNoCgo if the binary was built without SQLite.
func CheckDriver() error { return nil }

// IsBusy reports that another process holds a lock that this one needs.
func IsBusy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}

// sqliteKind returns the kind of an error by SQLite's code. The index of the WAL cannot grow on a full disk.
func sqliteKind(err error) error {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch {
	case e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB || e.ExtendedCode == sqlite3.ErrIoErrShortRead:
		return state.ErrCorrupt
	case e.Code == sqlite3.ErrError && missesName(e.Error()):
		return state.ErrCorrupt
	case e.Code == sqlite3.ErrFull || e.ExtendedCode == sqlite3.ErrIoErrSHMSize:
		return state.ErrFull
	case e.Code == sqlite3.ErrReadonly:
		return state.ErrReadOnly
	case e.Code == sqlite3.ErrPerm || e.Code == sqlite3.ErrAuth:
		return state.ErrForbidden
	case IsBusy(err):
		return state.ErrLocked
	}
	return nil
}

// missesName reports whether a statement found no table or column of its name, or no key. The statements are fixed, and
// run only where the version of the schema is known: its text is damaged.
func missesName(message string) bool {
	return strings.HasPrefix(message, "no such column: ") || strings.HasPrefix(message, "no such table: ") ||
		strings.Contains(message, " has no column named ") || strings.HasPrefix(message, "foreign key mismatch ") ||
		strings.HasPrefix(message, "ON CONFLICT clause does not match ")
}

// KeepWAL makes the end of the connection leave the WAL where it is: that of a damaged journal is set aside with it.
func (c *Conn) KeepWAL() {
	_ = c.driver.(*sqlite3.SQLiteConn).SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1)
}

// sqliteErrno returns the system's error number inside an error of SQLite.
func sqliteErrno(err error) (syscall.Errno, bool) {
	var e sqlite3.Error
	if !errors.As(err, &e) || e.SystemErrno == 0 {
		return 0, false
	}
	return e.SystemErrno, true
}

// Version returns the version of SQLite.
func Version() string {
	version, _, _ := sqlite3.Version()
	return version
}
