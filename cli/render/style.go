package render

// style is the parameter of an SGR sequence (ECMA-48).
type style string

// The basic colours follow the user's own theme, so no terminal has to be asked for its background.
const (
	bold    style = "1"
	faint   style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	blue    style = "34"
	magenta style = "35"
	cyan    style = "36"
)

const unstyled = "\x1b[m"

// paint styles a text of one line.
func (s Screen) paint(style style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + unstyled
}
