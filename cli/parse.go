package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/text"
)

// parser fills a command from its flags and words.
type parser struct {
	*kong.Kong
	name   string                // of the command
	known  map[string]*kong.Flag // by name and by letter, without dashes
	helped bool                  // help was asked for, and printed
	typed  []string              // the names of the flags on the command line
}

// newParser makes the parser of a command. Kong reads the flags from the fields of the struct and their tags.
func (p *Process) newParser(name string, c command) (*parser, error) {
	result := &parser{name: name, known: map[string]*kong.Flag{}}
	app, err := kong.New(c,
		kong.Name("retry"),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { result.helped = true }),
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeString)),
		kong.KindMapper(reflect.Uint64, kong.MapperFunc(decodeNumber)),
		kong.Help(func(kong.HelpOptions, *kong.Context) error {
			_, err := io.WriteString(p.Stdout, result.help(helpWidth(p.Stdout, p.Getenv), false))
			return err
		}),
	)
	if err != nil {
		return nil, err
	}
	result.Kong = app
	for _, f := range app.Model.Flags {
		result.known[f.Name] = f
		if f.Short != 0 {
			result.known[string(f.Short)] = f
		}
	}
	return result, nil
}

// decodeString keeps every byte of a value. Kong's own mapper converts through JSON, which changes a path that is not
// UTF-8.
func decodeString(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(token.String())
	}
	return err
}

// decodeNumber reads a number. Its error is easier to read than that of kong's own mapper.
func decodeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("number")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(token.String(), 0, 64)
	if err != nil {
		return fmt.Errorf("invalid number %q: want a whole number from 0 to %d", token.String(), uint64(math.MaxUint64))
	}
	target.SetUint(n)
	return nil
}

// parse reads the flags before the command's name and the words after it. It reports true where it printed help
// instead.
func (p *parser) parse(line commandLine) (helped bool, err error) {
	words, err := p.pair(line.words)
	if err == nil {
		args := append(line.flags, words...)
		p.typed = typedFlags(args)
		_, err = p.Parse(args)
	}
	switch {
	case p.helped:
		return true, nil
	case err != nil:
		return false, text.WithHint(err, p.hint())
	}
	return false, nil
}

// typedFlags returns the names of the flags among arguments that take and pair have written out.
func typedFlags(args []string) (names []string) {
	for _, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "--")
		if name, _, _ = strings.Cut(name, "="); isFlag && name == "" {
			return names
		} else if isFlag {
			names = append(names, name)
		}
	}
	return names
}

// hint says what kong cannot know: the flag may be meant for the command to run, or for a program with the name of one
// of retry's commands.
func (p *parser) hint() string {
	if p.name == "run" {
		return "retry --help lists the flags; what follows -- is the command"
	}
	program, _, _ := strings.Cut(p.name, " ")
	return fmt.Sprintf("retry %s --help; to run a program named %s: retry -- %[2]s", p.name, program)
}

// pair joins each flag among the words after a command's name with its value, which may begin with a dash. What follows
// a -- stays as it is.
func (p *parser) pair(words []string) (paired []string, err error) {
	for len(words) > 0 {
		taken, rest := words[:1], words[1:]
		if words[0] == "--" {
			return append(paired, words...), nil
		}
		if isFlag(words[0]) {
			if taken, rest, err = p.take(words); err != nil {
				return nil, err
			}
		}
		paired, words = append(paired, taken...), rest
	}
	return paired, nil
}

// take reads the first argument as a flag, or as several letters, with the value that belongs to it. An unknown long
// flag is left to kong, which names the nearest.
func (p *parser) take(args []string) (taken, rest []string, err error) {
	name, isLong := strings.CutPrefix(args[0], "--")
	if isLong {
		name, _, attached := strings.Cut(name, "=")
		switch flag := p.known[name]; {
		case flag == nil:
			return args[:1], args[1:], p.curlError("--"+name, name)
		case attached || flag.IsBool():
			return args[:1], args[1:], nil
		default:
			return valued(flag, args[0], "", args[1:])
		}
	}
	letters := args[0][1:]
	for i, r := range letters {
		letter := string(r)
		switch flag := p.known[letter]; {
		case flag == nil:
			return p.unknownLetter(args, letter)
		case flag.IsBool():
			taken = append(taken, "--"+flag.Name)
		default:
			attached := strings.TrimPrefix(letters[i+len(letter):], "=")
			more, rest, err := valued(flag, "-"+letter, attached, args[1:])
			if p.name == "http" && letter == "n" && err == nil && strings.ContainsAny(more[0], ":/.") { // a URL
				err = errors.New("-n is the number of attempts here\nhint: --netrc is what curl calls -n")
			}
			return append(taken, more...), rest, err
		}
	}
	return taken, args[1:], nil
}

// unknownLetter returns the error for letters of which one is not a flag, with what was probably meant.
func (p *parser) unknownLetter(args []string, letter string) (taken, rest []string, err error) {
	letters := args[0][1:]
	swapped := strings.ToLower(letter)
	if swapped == letter {
		swapped = strings.ToUpper(letter)
	}
	err = p.curlError("-"+letter, letter)
	switch {
	case p.known[letters] != nil:
		err = fmt.Errorf("unknown flag %s, did you mean -%[1]s?", args[0])
	case err != nil:
	case len(letters) > 2: // a long flag with one dash: kong names the nearest
		return []string{"-" + args[0]}, args[1:], nil
	case p.name == "http": // no suggestion: curl's upper and lower case letters mean different things
		err = fmt.Errorf("unknown flag -%s"+
			"\nhint: retry http --help lists the flags; they are those of curl that make sense here", letter)
	case p.known[swapped] != nil:
		err = fmt.Errorf("unknown flag -%s, did you mean -%s?", letter, swapped)
	default:
		err = text.WithHint(errors.New("unknown flag -"+letter), p.hint())
	}
	return nil, nil, err
}

// curlError says what to write instead of a flag of curl that retry http does not have; nil for any other flag.
func (p *parser) curlError(written, name string) error {
	if hint := flags.CurlHint(name); hint != "" && p.name == "http" {
		return fmt.Errorf("unknown flag %s\nhint: %s", written, hint)
	}
	return nil
}

// valued pairs a flag with its value, which is attached or the next argument.
func valued(flag *kong.Flag, written, attached string, rest []string) ([]string, []string, error) {
	if attached == "" {
		if len(rest) == 0 || rest[0] == "--" {
			return nil, nil, fmt.Errorf("%s needs a value\nhint: --%s=%s", written, flag.Name, flag.FormatPlaceHolder())
		}
		attached, rest = rest[0], rest[1:]
	}
	return []string{"--" + flag.Name + "=" + attached}, rest, nil
}
