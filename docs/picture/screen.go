package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// cell is a character of the screen, and how it is shown: "bold", "dim", "red" and so on, or nothing.
type cell struct {
	char  rune
	class string
}

// screen understands as much of a terminal's language as retry speaks: lines, the carriage return, erasing, and colours.
type screen struct {
	lines  [][]cell
	row    int
	column int
	class  string
}

// classes are the names of the colours that retry uses, by the codes that choose them.
var classes = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}

func (s *screen) print(text string) {
	for runes := []rune(text); len(runes) > 0; {
		switch r := runes[0]; {
		case r == '\r':
			s.column = 0
		case r == '\n':
			s.row++
		case r == '\x1b':
			runes = s.control(runes)
			continue
		default:
			s.put(r)
		}
		runes = runes[1:]
	}
}

// control obeys the sequence at the start of a text, and returns the rest of it.
func (s *screen) control(runes []rune) []rune {
	end := 1
	for end < len(runes)-1 && !isLetter(runes[end]) {
		end++
	}
	argument := strings.TrimPrefix(string(runes[1:end]), "[")
	switch runes[end] {
	case 'm':
		s.class = classes[argument]
	case 'K':
		if line := s.line(); s.column < len(*line) {
			*line = (*line)[:s.column]
		}
	case 'A':
		n, err := strconv.Atoi(argument)
		if err != nil {
			n = 1
		}
		s.row = max(0, s.row-n)
	}
	return runes[end+1:]
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

func (s *screen) line() *[]cell {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.row]
}

func (s *screen) put(r rune) {
	line := s.line()
	for len(*line) <= s.column {
		*line = append(*line, cell{char: ' '})
	}
	(*line)[s.column] = cell{r, s.class}
	s.column++
}

// text is what the screen shows, without colours.
func (s *screen) text() string {
	var out strings.Builder
	for _, line := range s.lines {
		for _, c := range line {
			out.WriteRune(c.char)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// The measures of the picture, in its own units.
const (
	charWidth, lineHeight = 8.4, 20
	left, top             = 18, 44
)

// style has the colours, which are readable on the dark ground of a terminal on light and dark pages alike.
const style = `text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6dae0; white-space: pre }
.bold { font-weight: bold; fill: #fff }
.dim { fill: #98a1ad }
.red { fill: #ff7b72 }
.green { fill: #5fd07a }
.yellow { fill: #e3b341 }
.cyan { fill: #56c8d8 }`

func (s *screen) svg() string {
	lines := s.lines
	width, height := left*2+columns*charWidth, top+len(lines)*lineHeight+8
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title>retry in a terminal</title>\n<desc>%s</desc>\n<style>%s</style>\n", html.EscapeString(s.text()), style)
	fmt.Fprintf(&out, `<rect width="%.0f" height="%d" rx="8" fill="#14181f"/>`+"\n", width, height)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&out, `<circle cx="%d" cy="18" r="5.5" fill="%s"/>`+"\n", left+6+i*19, colour)
	}
	for row, line := range lines {
		for start := 0; start < len(line); {
			end := start
			for end < len(line) && line[end].class == line[start].class {
				end++
			}
			out.WriteString(span(line[start:end], start, top+row*lineHeight+14))
			start = end
		}
	}
	return out.String() + "</svg>\n"
}

// span draws cells of one colour. Their width is given, so that columns stand below each other in any font.
func span(cells []cell, column, y int) string {
	var text strings.Builder
	for _, c := range cells {
		text.WriteRune(c.char)
	}
	trimmed := strings.TrimSpace(text.String())
	if trimmed == "" {
		return ""
	}
	column += len(text.String()) - len(strings.TrimLeft(text.String(), " "))
	class := ""
	if cells[0].class != "" {
		class = fmt.Sprintf(` class="%s"`, cells[0].class)
	}
	return fmt.Sprintf(`<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
		left+float64(column)*charWidth, y, float64(len([]rune(trimmed)))*charWidth, class, html.EscapeString(trimmed))
}
