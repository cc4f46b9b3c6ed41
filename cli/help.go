package cli

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
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
		case p.name == "grpc" && grpcHelp(f.Name) != "":
			help = grpcHelp(f.Name)
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

// shellWords begin what only a shell can run. A program of such a name would have been found.
const shellWords = " . : alias bg builtin case cd command declare eval exec exit export fg for function getopts if " +
	"jobs let local popd pushd read readonly return select set shift shopt source time trap type typeset ulimit umask " +
	"unalias unset until while { ( ! [[ "

// meant says what to write in place of a command that no program has the name of; empty where nobody can tell.
func (c *runCommand) meant() string {
	if len(c.Command) == 0 {
		return ""
	}
	word := c.Command[0]
	_, notNumber := strconv.Atoi(word)
	_, notTime := text.ParseDuration(word)
	_, port, notAddress := net.SplitHostPort(word)
	_, missing := os.Stat("./" + word)
	switch {
	case c.Shell != nil, word == "":
	case notNumber == nil:
		return "for " + word + " attempts: retry -n " + word + " -- COMMAND"
	case notTime == nil:
		return "retry -b " + word + " -- COMMAND waits so long between attempts, -t " + word +
			" stops an attempt then, -B " + word + " all of it"
	case word[0] == '-':
		return "flags go before the --: retry " + word + " … -- COMMAND"
	case isAssignment(word):
		return "variables go before retry: NAME=VALUE retry -- COMMAND"
	case word == "until" || word == "while" || word == "for":
		return "retry is the loop: retry -- COMMAND tries it until it succeeds; -c 'STRING' runs a script"
	case strings.Contains(shellWords, " "+word+" "):
		return word + " belongs to the shell: retry -c '" + word + " … && COMMAND' runs all of it in one"
	case strings.ContainsAny(word, " \t\n|&;<>()$`*"):
		return "a shell runs a string: " + render.Command([]string{"retry", "-c", word})
	case notAddress == nil && port != "" && strings.Trim(port, "0123456789") == "":
		return "retry wait " + word + " waits for a port"
	case missing == nil && !strings.Contains(word, "/"):
		return "did you mean ./" + word + "? A shell looks for programs in PATH alone, and so does retry"
	}
	return meantCommand(word)
}

func isAssignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// meantCommand takes a word for one of retry's own commands: misspelt, or as other tools call it.
func meantCommand(word string) string {
	for _, other := range []struct{ words, write string }{
		{"help", "retry --help"}, {"list history ps show", "retry status"},
		{"stop kill abort", "retry cancel TASK"}, {"continue", "retry resume TASK"},
		{"rerun again", "retry requeue --run TASK"},
		{"get post put GET POST PUT", "retry http URL"}, {"clean gc", "retry prune"},
		{"config policies", "retry policy list"},
	} {
		if slices.Contains(strings.Fields(other.words), word) {
			return "did you mean " + other.write + "?"
		}
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	if found := text.Nearest(word, names); found != "" && len(word) > 2 {
		return "did you mean retry " + found + "?"
	}
	return ""
}
