package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/render"
)

// help returns the help of a command, for a screen of that width. That of run has few of its flags: --help-all has all.
func (p *parser) help(width int, all bool) string {
	usage := ""
	for _, c := range commands {
		if c.name == p.name {
			usage = c.usage
		}
	}
	if p.name == "run" && !all {
		return layout(usage, width)
	}
	if p.name == "run" {
		usage = runUsageAll
	}
	return layout(usage+p.argumentsHelp()+p.flagsHelp(), width)
}

func (p *parser) argumentsHelp() string {
	var rows [][2]string
	for _, argument := range p.Model.Positional {
		if argument.Help != "" {
			rows = append(rows, [2]string{argument.Summary(), argument.Help})
		}
	}
	return section("Arguments", rows)
}

// flagsHelp lists the flags in groups, in the order in which the groups first appear.
func (p *parser) flagsHelp() string {
	var titles []string
	groups := map[string][][2]string{}
	for _, f := range p.Model.Flags {
		if f.Hidden {
			continue
		}
		title := "Flags"
		if f.Group != nil {
			title = f.Group.Title
		}
		if groups[title] == nil {
			titles = append(titles, title)
		}
		help := f.Help
		switch {
		case f.Name == "help":
			help = "Print this help."
		case p.name == "http" && httpHelp[f.Name] != "":
			help = httpHelp[f.Name]
		}
		groups[title] = append(groups[title], [2]string{flagSummary(f), help})
	}
	text := ""
	for _, title := range titles {
		text += section(title, groups[title])
	}
	return text
}

// flagSummary writes a flag with its letter and what its value looks like.
func flagSummary(f *kong.Flag) string {
	text := "    --" + f.Name
	if f.Short != 0 {
		text = fmt.Sprintf("-%c, --%s", f.Short, f.Name)
	}
	if !f.IsBool() {
		text += "=" + f.FormatPlaceHolder()
	}
	return text
}

// widestTerm is the longest text that others have the start of their explanations moved for.
const widestTerm = 26

// section writes rows of a term and its explanation below a title.
func section(title string, rows [][2]string) string {
	column := 0
	for _, row := range rows {
		if n := utf8.RuneCountInString(row[0]); n <= widestTerm {
			column = max(column, n)
		}
	}
	text := ""
	for _, row := range rows {
		text += "  " + row[0] + strings.Repeat(" ", max(2, column+2-utf8.RuneCountInString(row[0]))) + row[1] + "\n"
	}
	if text == "" {
		return ""
	}
	return "\n" + title + ":\n" + text
}

// Widths of help: explanations narrower than leastColumn are hard to read, and lines wider than widestHelp too.
const (
	leastColumn = 24
	widestHelp  = 110
	belowIndent = 8 // of an explanation that stands below its term
)

// layout breaks the lines of a help text that are too long for a screen. The lines of a paragraph are joined; an
// explanation stays in its column, or goes below its term where it has no room.
func layout(text string, width int) string {
	var b strings.Builder
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			b.WriteString(strings.Join(render.Wrapped(paragraph, width), "\n") + "\n")
		}
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != ' ' {
			paragraph = strings.TrimPrefix(paragraph+" "+line, " ")
			continue
		}
		flush()
		b.WriteString(brokenLine(line, width) + "\n")
	}
	flush()
	return b.String()
}

// brokenLine breaks an indented line: after the gap between a term and its explanation, or else anywhere.
func brokenLine(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	rest := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(rest)]
	head, column := indent, len(indent)+2
	if term, explanation, found := strings.Cut(rest, "  "); found {
		rest = strings.TrimLeft(explanation, " ")
		head, column = line[:len(line)-len(rest)], utf8.RuneCountInString(line)-utf8.RuneCountInString(rest)
		if width-column < min(leastColumn, utf8.RuneCountInString(rest)) {
			head = brokenLine(indent+term, width) + "\n" + strings.Repeat(" ", belowIndent)
			column = belowIndent
		}
	}
	return head + strings.Join(render.Wrapped(rest, max(1, width-column)), "\n"+strings.Repeat(" ", column))
}

// helpWidth is the width that help is laid out for: COLUMNS where that is set, as other programs have it.
func helpWidth(stdout *os.File, getenv func(string) string) int {
	width, err := strconv.Atoi(getenv("COLUMNS"))
	if err != nil || width <= 0 {
		width = render.ScreenOf(stdout, getenv).Width
	}
	if width <= 0 {
		width = 80
	}
	return min(width, widestHelp)
}
