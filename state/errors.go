package state

import (
	"errors"
	"fmt"
	"os"
)

// The errors of a store's methods, for errors.Is.
var (
	ErrNotFound     = errors.New("no such task")
	ErrFinished     = errors.New("the task has finished")
	ErrEndKept      = errors.New("the task has finished, and its end is kept beside the journal")
	ErrUnfinished   = errors.New("the task has not finished")
	ErrOwned        = errors.New("the task is running")
	ErrSucceeded    = errors.New("its name has succeeded in another run, and --once lets it succeed once")
	ErrMayBeDone    = errors.New("a request of its name may have taken effect, and --once sends none twice")
	ErrNamed        = errors.New("an unfinished task has this name")
	ErrQueued       = errors.New("it is queued: a worker carries it")
	ErrDamaged      = errors.New("the task cannot be read whole")
	ErrNested       = errors.New("it ran inside another task, whose attempts make it anew")
	ErrReply        = errors.New("its reply goes to stdout or to a file, which a worker has not")
	ErrInputDropped = errors.New("its stdin was kept until it ended, and no longer")
	ErrInputLost    = errors.New("its stdin was not kept to the end before retry was stopped")
	ErrNoPolicy     = errors.New("no such policy in the journal")
	ErrNoOutput     = errors.New("no output was captured")
)

// The reasons why a journal cannot be used, for errors.Is. Each such error ends with a hint.
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
	ErrMoved       = errors.New("the journal was moved away")
	ErrNoJournal   = errors.New("there is no journal yet")
)

// Fault is an error of a known kind, with what to do about it.
type Fault struct {
	Kind error // one of the above
	Err  error
	Hint string

	Dir  string      // of a damaged journal
	File os.FileInfo // of its database, to tell it from a new one
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("%v\nhint: %s", f.Err, f.Hint) }

// Unwrap lets errors.Is find both the kind and what the system reported.
func (f *Fault) Unwrap() []error { return []error{f.Kind, f.Err} }

// NewFault makes an error of a kind from a message and a hint.
func NewFault(kind error, hint, format string, args ...any) error {
	return &Fault{Kind: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}
