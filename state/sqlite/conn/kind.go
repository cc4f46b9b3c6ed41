package conn

import (
	"errors"
	"io/fs"

	"github.com/10f93571/retry/state"
)

// ErrNoCgo says that this binary contains no SQLite.
var ErrNoCgo = errors.New("this retry was built with CGO_ENABLED=0 and so without SQLite, which keeps its journal\n" +
	"hint: build it with CGO_ENABLED=1 and a C compiler")

// Kind returns which fault of package state an error of SQLite or of the system is; nil for none.
func Kind(err error) error {
	if kind := systemKind(err); kind != nil { // before SQLite's own code, which may say no more than "cannot open"
		return kind
	}
	if kind := sqliteKind(err); kind != nil {
		return kind
	}
	if errors.Is(err, fs.ErrPermission) {
		return state.ErrForbidden
	}
	return nil
}
