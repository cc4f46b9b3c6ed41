package render

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is what a report is drawn on. A width of 0 is a pipe or a file: nothing is cut there.
type Screen struct {
	Width  int
	Height int // the most lines of what is drawn anew again and again; 0 where it may scroll
	Color  bool
}

// ScreenOf looks at where a file leads: only a terminal has a width, and colours unless NO_COLOR or TERM=dumb says not.
func ScreenOf(f *os.File, getenv func(string) string) Screen {
	if !term.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return Screen{Width: width, Color: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Frame makes a picture of a report, to be drawn over the one before: from the upper left corner, each line cut where it would wrap
// and cleared before it is written, and what is below cleared. The cursor ends on the line below.
func (s Screen) Frame(text string) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines[:min(len(lines), s.Height)] {
		b.WriteString("\x1b[K" + s.cut(line) + "\r\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
