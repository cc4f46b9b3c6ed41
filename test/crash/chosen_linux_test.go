package crash

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// An actor is sent where it was not yet, not where its role never gets, and in the end where nobody died.
func TestCandidates(t *testing.T) {
	const role = "some"
	at := func(step string) roleAtStep { return roleAtStep{role, step} }
	tests := map[string]struct {
		tried  map[roleAtStep]luck
		deaths map[string]int
		goal   int
		want   []string
	}{
		"the first":        {nil, nil, 1, []string{"a", "b", "c"}},
		"new ones":         {map[roleAtStep]luck{at("a"): {1, 1}}, nil, 1, []string{"b", "c"}},
		"in vain so far":   {map[roleAtStep]luck{at("a"): {8, 0}, at("b"): {1, 1}, at("c"): {1, 0}}, nil, 1, []string{"a", "b", "c"}},
		"in vain":          {map[roleAtStep]luck{at("a"): {9, 0}, at("b"): {9, 1}, at("c"): {1, 0}}, nil, 1, []string{"b", "c"}},
		"nowhere":          {map[roleAtStep]luck{at("a"): {9, 0}, at("b"): {9, 0}, at("c"): {9, 0}}, nil, 1, nil},
		"spared by chance": {nil, map[string]int{"a": 3, "c": 1}, 4, []string{"b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally([]string{"a", "b", "c"}, test.goal)
			tally.tried, tally.deaths = test.tried, test.deaths
			if got := tally.candidates(role); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			step, _ := tally.choose(rand.New(rand.NewPCG(1, 2)), role, false)
			if step != "" && !slices.Contains(test.want, step) {
				t.Errorf("chose %q of %q", step, test.want)
			}
		})
	}
}
