package cli

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
)

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
		{"enqueue queue push submit schedule defer", "retry add"}, {"server api daemon", "retry serve"},
		{"work consume", "retry worker"},
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
