//go:build unix

package sqlite

import (
	"slices"
	"testing"

	"github.com/10f93571/retry/state"
)

// Its report may be still to come.
func TestATaskWhoseOwnerLivesIsNotPruned(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	owner := startOn(t, dir)
	owned, _ := owner.create()
	must(t, j.Cancel(t.Context(), owned, epoch.AddDate(0, 0, -1)))
	ended(t, j, succeeded, 1, epoch, nil)
	if n, _ := prune(t, j, state.Retention{Rows: leastRows}); n != 1 || !slices.Equal(left(t, j), []int64{owned}) {
		t.Errorf("%d went, left are %v", n, left(t, j))
	}
	owner.kill()
	if n, _ := prune(t, j, state.Retention{}); n != 1 {
		t.Errorf("%d went", n)
	}
}
