package cli

import (
	"errors"
	"fmt"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
)

// errAbsent says that no journal is where one is looked for. Most commands take that for a journal without tasks.
var errAbsent = errors.New("no journal there yet")

// absence returns errAbsent with the place and what led there; nil where a journal is, or something that keeps us from looking.
func (f *stateFlag) absence(p *Process) error {
	place, err := lock.Locate(f.State, p.getenv)
	if err != nil || sqlite.Exists(place.Dir) {
		return nil
	}
	return fmt.Errorf("%s (%s): %w\nhint: the first run makes it; do the jobs run as another user, or with another RETRY_STATE_DIR?",
		text.Escape(place.Dir), place.Source, errAbsent)
}
