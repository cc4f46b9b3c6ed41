package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The ways in which a journal cannot be used, for errors.Is. Each error of one of these kinds ends with a hint that says
// what to do.
var (
	ErrCorrupt     = errors.New("the journal is damaged")
	ErrForeign     = errors.New("another program's database")
	ErrNewer       = errors.New("the journal was written by a newer retry")
	ErrFull        = errors.New("no space is left")
	ErrFileLimit   = errors.New("a file has its largest size")
	ErrReadOnly    = errors.New("the file system is read-only")
	ErrLocked      = errors.New("another process holds the lock of the journal")
	ErrForbidden   = errors.New("permission denied")
	ErrNoFiles     = errors.New("no file descriptors are left")
	ErrOwner       = errors.New("the journal belongs to somebody else")
	ErrMode        = errors.New("the journal may be written by others")
	ErrForeignHome = errors.New("the home directory belongs to somebody else")
	ErrNetwork     = errors.New("the journal is on a network file system")
	ErrNoJournal   = errors.New("there is no journal yet")
)

// Fault is an error of a known kind, with what to do about it.
type Fault struct {
	Kind error // one of the above
	Err  error
	Hint string

	dir  string      // of a damaged journal
	file os.FileInfo // of its database, so that a fresh one is not taken for it
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("%v\nhint: %s", f.Err, f.Hint) }

// Unwrap lets errors.Is find both the kind and what the system reported.
func (f *Fault) Unwrap() []error { return []error{f.Kind, f.Err} }

// diagnose gives an error of SQLite or the system its kind and hint. One that has them, or is of no known kind, stays as it is.
func diagnose(dir string, err error) error {
	var known *Fault
	kind := kindOf(err)
	if err == nil || kind == nil || errors.As(err, &known) {
		return err
	}
	return &Fault{Kind: kind, Err: err, Hint: hintFor(kind, dir), dir: dir}
}

// kindOf asks the system's error number first: SQLite's own code for it may be no more than "cannot open".
func kindOf(err error) error {
	if kind := systemKind(err); kind != nil {
		return kind
	}
	if kind := sqliteKind(err); kind != nil {
		return kind
	}
	if errors.Is(err, fs.ErrPermission) {
		return ErrForbidden
	}
	return nil
}

// hintFor says what to do about a fault of the journal in dir.
func hintFor(kind error, dir string) string {
	switch {
	case errors.Is(kind, ErrCorrupt):
		return "retry doctor --state " + dir + " says what is wrong; retry -- COMMAND, without --require-state, sets the journal aside and begins a new one"
	case errors.Is(kind, ErrFull):
		return "make room on the file system of " + dir + ", or use another directory with --state"
	case errors.Is(kind, ErrFileLimit):
		return "raise the limit with ulimit -f, or keep no journal with --no-state"
	case errors.Is(kind, ErrReadOnly):
		return readOnlyHint(dir)
	case errors.Is(kind, ErrLocked):
		return "retry doctor --state " + dir + " names the process that holds it"
	case errors.Is(kind, ErrForbidden):
		return "see who may read and write " + dir + ", or use a directory of your own with --state"
	case errors.Is(kind, ErrNoFiles):
		return "raise the limit with ulimit -n, or keep no journal with --no-state"
	}
	return "retry doctor --state " + dir + " tells more"
}

// readOnlyHint tells a file system that is read-only from files that are: SQLite does not.
func readOnlyHint(dir string) string {
	if system, err := statfs(dir); err == nil && !system.readOnly {
		return "chmod u+w " + dir + " and what is in it, or use another directory with --state"
	}
	return "mount the file system of " + dir + " writable, or use another directory with --state"
}

// fault makes an error of a kind from a message and a hint.
func fault(kind error, hint, format string, args ...any) error {
	return &Fault{Kind: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}
