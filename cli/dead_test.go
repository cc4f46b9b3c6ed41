package cli

import (
	"context"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
)

// grouped is a journal that notes which dead letters it is asked for.
type grouped struct {
	state.Store
	asked state.PageFilter
}

func (g *grouped) Groups(_ context.Context, f state.PageFilter, _ int) ([]state.Group, error) {
	g.asked = f
	return []state.Group{{Host: "a", PolicyID: "fast"}, {PolicyID: "fast"}, {Host: "a"}}, nil
}

// The journal leaves out other hosts and policies before it groups; what it cannot say, none, is left out of the
// groups.
func TestGroupsOfAHostAndAPolicy(t *testing.T) {
	for _, tt := range []struct {
		host, policy *string
		asked        state.PageFilter
		want         int
	}{
		{nil, nil, state.PageFilter{}, 3},
		{new("a"), nil, state.PageFilter{Host: "a"}, 2},
		{new("a"), new("fast"), state.PageFilter{Host: "a", PolicyID: "fast"}, 1},
		{new("-"), nil, state.PageFilter{}, 1},
		{nil, new("-"), state.PageFilter{}, 1},
	} {
		journal := &grouped{}
		groups, err := (&deadFlags{Host: tt.host, Policy: tt.policy}).groups(t.Context(), journal, nil)
		testkit.Must(t, err)
		if journal.asked.Host != tt.asked.Host || journal.asked.PolicyID != tt.asked.PolicyID || len(groups) != tt.want {
			t.Errorf("%+v: got %+v asked for and %d groups, want %d", tt.asked, journal.asked, len(groups), tt.want)
		}
	}
}
