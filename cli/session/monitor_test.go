package session

import (
	"errors"
	"fmt"
	"testing"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/metrics"
	"github.com/10f93571/retry/state"
)

// A warning of what could not follow a dead task is a line, and counts; another one is a line alone.
func TestUnfollowedIsCounted(t *testing.T) {
	m := &monitor{metrics: metrics.NewService(metrics.Build{})}
	var lines warnings
	tell := Tell{Lines: &lines, Also: m}
	tell.Warn(fmt.Errorf("a: %w", &state.UnfollowedError{ID: "1", Err: errors.New("taken")}))
	tell.Warn(errors.New("b"))
	if got := m.metrics.Unfollowed.Value(); got != 1 || len(lines.all) != 2 {
		t.Errorf("got %d counted, lines %v, want 1 and both", got, lines.all)
	}
}

// warnings keeps what is warned of.
type warnings struct {
	render.Observer
	all []error
}

func (w *warnings) Warn(err error) { w.all = append(w.all, err) }
