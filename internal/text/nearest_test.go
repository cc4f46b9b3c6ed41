package text

import (
	"testing"
)

func TestDistance(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "fib", 3}, {"fib", "fib", 0}, {"fob", "fib", 1}, {"fibs", "fib", 1}, {"ib", "fib", 1},
		{"kitten", "sitting", 3}, {"linaer", "linear", 1}, {"quite", "quiet", 1}, {"ab", "ba", 1}, {"abc", "xyz", 3},
	} {
		if got := distance(row.a, row.b); got != row.want {
			t.Errorf("distance(%q, %q): got %d, want %d", row.a, row.b, got, row.want)
		}
	}
}
