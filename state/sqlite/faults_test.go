//go:build cgo

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestDiagnose(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
		hint string
	}{
		{"malformed", sqlite3.Error{Code: sqlite3.ErrCorrupt}, state.ErrCorrupt, "retry doctor --state /j"},
		{"no database", sqlite3.Error{Code: sqlite3.ErrNotADB}, state.ErrCorrupt, "retry doctor --state /j"},
		{"cut off", sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrShortRead}, state.ErrCorrupt, "retry doctor --state /j"},
		{"full", sqlite3.Error{Code: sqlite3.ErrFull}, state.ErrFull, "make room on the file system of /j"},
		{"no room for the index", sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrSHMSize}, state.ErrFull, "make room"},
		{"no room, says the system", sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, state.ErrFull, "make room"},
		{"no larger file", sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EFBIG}, state.ErrFileLimit, "raise the limit with ulimit -f"},
		{"read-only", sqlite3.Error{Code: sqlite3.ErrReadonly}, state.ErrReadOnly, "mount the file system of /j writable"},
		{"busy", sqlite3.Error{Code: sqlite3.ErrBusy}, state.ErrLocked, "retry doctor --state /j names the process"},
		{"no descriptors", sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EMFILE}, state.ErrNoFiles, "raise the limit with ulimit -n"},
		{"forbidden", sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EACCES}, state.ErrForbidden, "see who may read and write /j"},
		{"quota", &os.PathError{Op: "mkdir", Err: syscall.EDQUOT}, state.ErrFull, "make room"},
		{"read-only directory", &os.PathError{Op: "mkdir", Err: syscall.EROFS}, state.ErrReadOnly, "mount the file system"},
		{"no descriptors in all", &os.PathError{Op: "open", Err: syscall.ENFILE}, state.ErrNoFiles, "raise the limit"},
		{"forbidden file", &os.PathError{Op: "open", Err: syscall.EPERM}, state.ErrForbidden, "see who may"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := diagnose("/j", fmt.Errorf("open: %w", test.err))
			if !errors.Is(got, test.want) || !errors.Is(got, test.err) {
				t.Errorf("got %v; want %v and what it came from", got, test.want)
			}
			if text, hint, _ := strings.Cut(got.Error(), "\nhint: "); text != "open: "+test.err.Error() || !strings.HasPrefix(hint, test.hint) {
				t.Errorf("got %q; want the hint %q", got, test.hint)
			}
			if again := diagnose("/other", got); again != got { //nolint:errorlint // the very same
				t.Errorf("a second diagnosis made %v", again)
			}
		})
	}
}

// What is no fault of the journal stays as it is.
func TestDiagnoseLeavesTheRest(t *testing.T) {
	for _, err := range []error{nil, task.ErrNotOwner, state.ErrNamed, sqlite3.Error{Code: sqlite3.ErrConstraint}, errors.New("other")} {
		if got := diagnose("/j", err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v became %v", err, got)
		}
	}
}
