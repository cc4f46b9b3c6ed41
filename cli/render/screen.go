package render

import (
	"os"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// Screen is what a report is drawn on. A width of 0 is a pipe or a file: nothing is cut there.
type Screen struct {
	Width int
	Color bool
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

// The sixteen basic colours follow the user's own theme, so no terminal has to be asked for its background.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	blue   = lipgloss.NewStyle().Foreground(lipgloss.Blue)
)

func (s Screen) paint(style lipgloss.Style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return style.Render(text)
}
