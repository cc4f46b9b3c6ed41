package render

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// measure takes a text as terminals do: by grapheme clusters, where styles have no width.
var measure = displaywidth.Options{ControlSequences: true}

// cellsOf is how many cells of a terminal a text takes.
func cellsOf(text string) int { return measure.String(text) }

// truncate shortens a text to so many cells, the tail among them. A style that would end after the cut ends there.
func truncate(text string, cells int, tail string) string {
	return measure.TruncateString(text, cells, tail)
}

// wrapped breaks a text without styles into lines of so many cells.
func wrapped(text string, cells int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrappedLine(line, cells)...)
	}
	return lines
}

// wrappedLine breaks at spaces, and a word where it alone is wider than a line.
func wrappedLine(text string, cells int) (lines []string) {
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case cellsOf(line)+1+cellsOf(word) <= cells:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for head := truncate(line, cells, ""); head != line && head != ""; head = truncate(line, cells, "") {
			lines, line = append(lines, head), line[len(head):]
		}
	}
	return append(lines, line)
}
