//go:build cgo

package cmdexec

import (
	"testing"
)

// Go's runtime knows this of HUP and INT only.
func TestInheritedIgnored(t *testing.T) {
	for _, names := range []string{"", "HUP", "INT", "TERM", "HUP INT QUIT USR1 PIPE ALRM TERM TSTP WINCH SYS"} {
		caller := []string{"sh", "-c", `for s in $0; do trap '' $s; done; exec "$@"`, names}
		if got := outputOf(t, append(caller, helperCommand("ignored")...)); got != names {
			t.Errorf("got %q, want %q", got, names)
		}
	}
}
