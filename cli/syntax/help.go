package syntax

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/render"
)

// Help returns the help of a command, for a screen of that width. That of run has few of its flags: --help-all has all.
func (p *Parser) Help(width int, all bool) string {
	if p.command.Short && !all {
		return layout(p.command.Usage, width)
	}
	return layout(p.Usage()+section("Arguments", p.Arguments())+p.flagsHelp(), width)
}

func (p *Parser) flagsHelp() (text string) {
	for _, group := range p.Groups() {
		var rows [][2]string
		for _, f := range group.Flags {
			rows = append(rows, [2]string{flagSummary(f), p.HelpOf(f)})
		}
		text += section(group.Title, rows)
	}
	return text
}

// Name is that of the command: a word, or two.
func (p *Parser) Name() string { return p.name }

// Usage is what help with all flags prints above these.
func (p *Parser) Usage() string {
	if p.command.Short {
		return p.command.UsageAll
	}
	return p.command.Usage
}

// Arguments returns the words that follow the command, each with its help.
func (p *Parser) Arguments() (rows [][2]string) {
	for _, argument := range p.Model.Positional {
		if argument.Help != "" {
			rows = append(rows, [2]string{argument.Summary(), argument.Help})
		}
	}
	return rows
}

// Group is flags that help lists under a title.
type Group struct {
	Title string
	Flags []*kong.Flag
}

// Groups returns the flags that help lists, in the order in which the groups first appear.
func (p *Parser) Groups() (groups []Group) {
	for _, f := range p.Model.Flags {
		if f.Hidden {
			continue
		}
		title := "Flags"
		if f.Group != nil {
			title = f.Group.Title
		}
		at := slices.IndexFunc(groups, func(g Group) bool { return g.Title == title })
		if at < 0 {
			at, groups = len(groups), append(groups, Group{Title: title})
		}
		groups[at].Flags = append(groups[at].Flags, f)
	}
	return groups
}

// HelpOf returns what help says of a flag.
func (p *Parser) HelpOf(f *kong.Flag) string {
	if f.Name == "help" {
		return "Print this help."
	}
	if p.command.Help != nil {
		if help := p.command.Help(f.Name); help != "" {
			return help
		}
	}
	return f.Help
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

// HelpWidth is the width that help is laid out for: COLUMNS where that is set, as other programs have it.
func HelpWidth(stdout *os.File, getenv func(string) string) int {
	width, err := strconv.Atoi(getenv("COLUMNS"))
	if err != nil || width <= 0 {
		width = render.ScreenOf(stdout, getenv).Width
	}
	if width <= 0 {
		width = 80
	}
	return min(width, widestHelp)
}
