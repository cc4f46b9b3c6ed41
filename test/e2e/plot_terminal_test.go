//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// The picture of retry plot on real terminals: as wide as they are, with the dots of colours where there are colours, and signs elsewhere.
func TestPlotOnTerminals(t *testing.T) {
	binary := buildForTerminals(t)
	for _, tt := range []struct {
		width  uint16
		env    string
		colour bool
	}{{60, "TERM=xterm", true}, {140, "TERM=xterm", true}, {80, "NO_COLOR=1", false}, {100, "TERM=dumb", false}} {
		t.Run(fmt.Sprint(tt.width, " ", tt.env), func(t *testing.T) {
			s := newConsole(t, binary)
			s.resize(tt.width)
			s.start(tt.env, "retry", "plot", "exp:1s..1m/none", "exp:1s..1m/30%")
			s.exits(0)
			text := strings.ReplaceAll(string(s.raw), "\r", "")
			if strings.Contains(text, "\x1b[31m") != tt.colour || strings.Contains(text, "⡇") != tt.colour {
				t.Errorf("not the right colours and dots:\n%s", text)
			}
			widest, side := 0, 0
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(plainText(line), "\n")
				widest, side = max(widest, len([]rune(line))), max(side, strings.Count(line, "Load: "))
			}
			if want := int(tt.width); widest > want || widest < want-4 || side != 1+want/100 {
				t.Errorf("%d side by side, %d characters in a window of %d:\n%s", side, widest, want, text)
			}
		})
	}
}
