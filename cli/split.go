package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// commandLine is a command line taken apart: what kong may parse, and the command, which it must not touch.
type commandLine struct {
	subcommand string
	flags      []string // normalised to --name or --name=value
	words      []string // what follows the name of a subcommand other than run
	command    []string
}

// splitLine finds where retry's own flags end. A -- before the first word starts the command; otherwise the first word does,
// unless it names a subcommand. Which flags take a value is read from run, whose flags include those that all share.
func splitLine(args []string, flags flagSet) (commandLine, error) {
	line := commandLine{subcommand: "run"}
	named := false
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			line.command = args[1:]
			return line, nil
		case !isFlag(arg) && !named && isSubcommand(arg):
			line.subcommand, named, args = arg, true, args[1:]
			if len(args) > 0 && hasVerb(arg, args[0]) {
				line.subcommand, args = arg+" "+args[0], args[1:]
			}
			if arg != "run" {
				line.words = args
				return line, nil
			}
		case !isFlag(arg):
			line.command = args
			return line, nil
		default:
			taken, rest, err := flags.take(args)
			if err != nil {
				return line, err
			}
			line.flags, args = append(line.flags, taken...), rest
		}
	}
	return line, nil
}

func isSubcommand(word string) bool {
	return word == "run" || ofOneWord(word) != nil
}

func isFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-'
}

// flagSet knows the flags of a subcommand by their names, without their dashes.
type flagSet struct {
	subcommand string
	named      map[string]*kong.Flag
}

func newFlagSet(subcommand string, model *kong.Application) flagSet {
	set := flagSet{subcommand, map[string]*kong.Flag{}}
	for _, f := range model.Flags {
		set.named[f.Name] = f
		if f.Short != 0 {
			set.named[string(f.Short)] = f
		}
	}
	return set
}

// pair gives each known flag among the words of a subcommand the value that belongs to it, as take does for run: also one that begins
// with a dash. What follows a -- stays as it is.
func (s flagSet) pair(words []string) (paired []string, err error) {
	for len(words) > 0 {
		taken, rest := words[:1], words[1:]
		switch word := words[0]; {
		case word == "--":
			return append(paired, words...), nil
		case isFlag(word) && (word[1] == '-' || s.named[word[1:2]] != nil):
			if taken, rest, err = s.take(words); err != nil {
				return nil, err
			}
		}
		paired, words = append(paired, taken...), rest
	}
	return paired, nil
}

// take reads the first argument as a flag, or as several short ones, with the value that belongs to it. A value may begin
// with a dash. Unknown flags are left to kong, which names the nearest.
func (s flagSet) take(args []string) (taken, rest []string, err error) {
	name, isLong := strings.CutPrefix(args[0], "--")
	if isLong {
		flag := s.named[name]
		if flag == nil || flag.IsBool() {
			return args[:1], args[1:], nil
		}
		return s.valued(flag, args[0], "", args[1:])
	}
	shorts := args[0][1:]
	for i, letter := range shorts {
		flag := s.named[string(letter)]
		switch {
		case flag == nil && s.named[shorts] != nil:
			return nil, nil, fmt.Errorf("unknown flag %s, did you mean -%[1]s?", args[0])
		case flag == nil && len(shorts) > 2:
			return []string{"-" + args[0]}, args[1:], nil // a long one with a dash too few: kong names the nearest
		case flag == nil && s.named[swapCase(letter)] != nil:
			return nil, nil, fmt.Errorf("unknown flag -%c, did you mean -%s?", letter, swapCase(letter))
		case flag == nil:
			return nil, nil, fmt.Errorf("unknown flag -%c\nhint: retry --help lists the flags; what follows -- is the command", letter)
		case flag.IsBool():
			taken = append(taken, "--"+flag.Name)
		default:
			attached := strings.TrimPrefix(shorts[i+len(string(letter)):], "=")
			more, rest, err := s.valued(flag, "-"+string(letter), attached, args[1:])
			return append(taken, more...), rest, err
		}
	}
	return taken, args[1:], nil
}

// swapCase is -n for -N.
func swapCase(letter rune) string {
	if lower := strings.ToLower(string(letter)); lower != string(letter) {
		return lower
	}
	return strings.ToUpper(string(letter))
}

// valued pairs a flag with its value, which is attached or the next argument.
func (s flagSet) valued(flag *kong.Flag, written, attached string, rest []string) ([]string, []string, error) {
	if attached == "" {
		if len(rest) == 0 || rest[0] == "--" {
			describe(s.subcommand, []*kong.Flag{flag})
			return nil, nil, fmt.Errorf("%s needs a value\nhint: --%s=%s", written, flag.Name, flag.FormatPlaceHolder())
		}
		attached, rest = rest[0], rest[1:]
	}
	return []string{"--" + flag.Name + "=" + attached}, rest, nil
}
