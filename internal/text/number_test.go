package text

import (
	"testing"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{"1 policy": Count(1, "policy"), "0 policies": Count(0, "policy"), "2 tasks": Count(2, "task")} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
