package sqlite

import (
	"errors"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
)

// diagnose gives an error of SQLite or the system its kind and hint. It returns other errors unchanged.
func diagnose(dir string, err error) error {
	if err == nil || errors.As(err, new(*state.Fault)) {
		return err
	}
	kind := conn.Kind(err)
	if kind == nil && errors.Is(err, errUnreadWAL) {
		kind = state.ErrCorrupt
	}
	if kind == nil {
		return err
	}
	return &state.Fault{Kind: kind, Err: err, Hint: hintFor(kind, dir), Dir: dir}
}

// hintFor says what to do about a fault of the journal in dir.
func hintFor(kind error, dir string) string {
	switch {
	case errors.Is(kind, state.ErrCorrupt):
		return "retry doctor --state " + dir + " says what is wrong; " +
			"retry -- COMMAND, without --require-state, sets the journal aside and begins a new one"
	case errors.Is(kind, state.ErrFull):
		return "make room on the file system of " + dir + ", or use another directory with --state"
	case errors.Is(kind, state.ErrFileLimit):
		return "raise the limit with ulimit -f, or keep no journal with --no-state"
	case errors.Is(kind, state.ErrReadOnly):
		return lock.ReadOnlyHint(dir)
	case errors.Is(kind, state.ErrLocked):
		return "retry doctor --state " + dir + " names the process that holds it"
	case errors.Is(kind, state.ErrForbidden):
		return "see who may read and write " + dir + ", or use a directory of your own with --state"
	case errors.Is(kind, state.ErrNoFiles):
		return "raise the limit with ulimit -n, or keep no journal with --no-state"
	}
	return "retry doctor --state " + dir + " tells more"
}
