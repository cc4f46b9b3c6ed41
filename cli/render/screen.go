// Package render writes every line that a person reads about tasks: tables, details, progress, schedules; and the JSON
// that programs read. Whatever a command, a server or a journal brought along is escaped (internal/text) before it
// reaches a terminal.
package render

import (
	"cmp"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"golang.org/x/term"
)

// Screen is what a report is drawn on. A width of 0 is a pipe or a file: nothing is cut there.
type Screen struct {
	Width  int
	Height int // the most lines of a report that is drawn again and again; 0 where it may scroll
	Color  bool
	Marks  bool // signs such as ✓ can be shown
}

// ScreenOf returns the screen that a file leads to. Only a terminal has a width, and colours unless NO_COLOR or
// TERM=dumb is set; CLICOLOR_FORCE asks for colours elsewhere.
func ScreenOf(f *os.File, getenv func(string) string) Screen {
	force := getenv("CLICOLOR_FORCE")
	forced := force != "" && force != "0"
	if !term.IsTerminal(int(f.Fd())) {
		return Screen{Color: forced && getenv("NO_COLOR") == ""}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	smart := getenv("TERM") != "dumb"
	return Screen{Width: width, Color: (smart || forced) && getenv("NO_COLOR") == "", Marks: smart && inUTF8(getenv)}
}

// inUTF8 reports whether the locale's characters are UTF-8, as POSIX finds it out.
func inUTF8(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// The styles. The eight basic colours follow the user's own theme, so the terminal need not be asked for its
// background.
var (
	Bold    = lipgloss.NewStyle().Bold(true)
	Faint   = lipgloss.NewStyle().Faint(true)
	Red     = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(1))
	Green   = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(2))
	Yellow  = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(3))
	Blue    = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(4))
	Magenta = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(5))
	Cyan    = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(6))
)

// The renderers have their colour profile set, so lipgloss does not look for one in the environment and at stdout.
var (
	uncolored = newRenderer(termenv.Ascii)
	colored   = newRenderer(termenv.ANSI)
)

func newRenderer(profile termenv.Profile) *lipgloss.Renderer {
	r := lipgloss.NewRenderer(io.Discard, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	return r
}

// On returns a style as this screen shows it.
func (s Screen) On(style lipgloss.Style) lipgloss.Style {
	if s.Color {
		return style.Renderer(colored)
	}
	return style.Renderer(uncolored)
}

// Paint styles a text of one line.
func (s Screen) Paint(style lipgloss.Style, text string) string {
	if text == "" {
		return ""
	}
	return s.On(style).Inline(true).Render(text)
}

// cut shortens a line to the screen's width, with an ellipsis.
func (s Screen) cut(line string) string {
	if s.Width == 0 {
		return line
	}
	return ansi.Truncate(line, s.Width, "…")
}

// Wrapped breaks a text into lines of so many cells; a word that is longer breaks after a comma, if it has one.
// ansi.Wrap would break --tasks after its hyphens, and writes wide characters past the end of a line.
func Wrapped(text string, cells int) (lines []string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for i, word := range strings.Split(paragraph, " ") {
			switch {
			case i == 0:
				line = word
			case lipgloss.Width(line)+1+lipgloss.Width(word) <= cells:
				line += " " + word
			default:
				lines, line = append(lines, line), word
			}
			for head := ansi.Truncate(line, cells, ""); head != line && head != ""; head = ansi.Truncate(line, cells, "") {
				head = head[:cmp.Or(strings.LastIndex(head, ",")+1, len(head))]
				lines, line = append(lines, head), line[len(head):]
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// ColumnGap is the space between two columns of a table.
const ColumnGap = 2

// WriteRows writes Rows.
func (s Screen) WriteRows(w io.Writer, rows [][]string) error {
	_, err := io.WriteString(w, s.Rows(rows))
	return err
}

// Rows draws a table whose first row holds the titles. Whatever is too wide for the screen is cut at the end of the
// line.
func (s Screen) Rows(rows [][]string) string {
	widths := ColumnWidths(rows)
	titles := make([]string, len(rows[0]))
	for i, title := range rows[0] {
		titles[i] = s.Paint(Bold, title)
	}
	var b strings.Builder
	for _, row := range append([][]string{titles}, rows[1:]...) {
		b.WriteString(s.line(row, widths) + "\n")
	}
	return b.String()
}

// line is a row of a table whose columns have these widths.
func (s Screen) line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(cell)
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-lipgloss.Width(cell))+ColumnGap))
		}
	}
	return strings.TrimRight(s.cut(strings.TrimRight(b.String(), " ")), " ")
}

// Frame returns the bytes that draw a report over the one before, from the upper left corner: each line is erased
// before it is written, and cut where it would wrap; what is below is erased. The cursor ends on the line below.
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
