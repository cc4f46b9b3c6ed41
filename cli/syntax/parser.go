// Package syntax is what the fields of a command say: how its flags and words are read, its help, what Tab offers, and
// its page in the manual. One model of kong is behind all of them.
package syntax

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/text"
)

// Command is what is known of one of retry's own commands. Its flags and words are the fields of a struct with their
// tags, which kong reads.
type Command struct {
	Name   string
	Usage  string // what help prints above the flags
	Fields any    // a pointer to the struct
	Groups []any  // in place of Fields: pointers to the parts of it that a line may need, without --help
	// Short says that Usage has the flags that matter: UsageAll with all flags is printed by --help-all.
	Short    bool
	UsageAll string
	// Help returns the help of a flag that means something else for this command than its tag says; else it is empty.
	Help func(flag string) string
}

// Output is where help is printed.
type Output struct {
	Stdout, Stderr *os.File
	Getenv         func(string) string
}

// Parser fills a command from its flags and words.
type Parser struct {
	Model *kong.Application
	Typed []string // the names of the flags on the command line, after Parse

	app     *kong.Kong
	command Command
	name    string                // of the command
	known   map[string]*kong.Flag // by name and by letter, without dashes
	given   map[string]spelling   // the flags with values on the command line, by name
	helped  bool                  // help was asked for, and printed
}

// spelling is how a flag stands on the command line.
type spelling struct{ written, value string }

// New makes the parser of a command.
func New(c Command, out Output) (*Parser, error) {
	p := &Parser{command: c, name: c.Name, known: map[string]*kong.Flag{}, given: map[string]spelling{}}
	fields, options := c.Fields, []kong.Option{
		kong.Name("retry"),
		kong.Writers(out.Stdout, out.Stderr),
		kong.Exit(func(int) { p.helped = true }),
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeString)),
		kong.KindMapper(reflect.Uint64, kong.MapperFunc(decodeNumber)),
		kong.Help(func(kong.HelpOptions, *kong.Context) error {
			_, err := io.WriteString(out.Stdout, p.Help(HelpWidth(out.Stdout, out.Getenv), false))
			return err
		}),
	}
	if fields == nil {
		fields, options = &struct{}{}, append(options, kong.NoDefaultHelp())
	}
	for _, group := range c.Groups {
		options = append(options, kong.Embed(group))
	}
	app, err := kong.New(fields, options...)
	if err != nil {
		return nil, err
	}
	p.app, p.Model = app, app.Model
	for _, f := range app.Model.Flags {
		p.known[f.Name] = f
		if f.Short != 0 {
			p.known[string(f.Short)] = f
		}
	}
	return p, nil
}

// Known yields the flags by their names and letters, without dashes.
func (p *Parser) Known() iter.Seq2[string, *kong.Flag] { return maps.All(p.known) }

// Flag returns the flag of a name or a letter, without dashes; nil where the command has none.
func (p *Parser) Flag(name string) *kong.Flag { return p.known[name] }

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

// Parse reads the flags before the command's name and the words after it. It reports true where it printed help
// instead.
func (p *Parser) Parse(flags, words []string) (helped bool, err error) {
	words, err = p.Pair(words)
	if err == nil {
		err = p.CheckTimes()
	}
	if err == nil {
		args := slices.Concat(flags, words)
		p.Typed = typedFlags(args)
		_, err = p.app.Parse(args)
	}
	switch {
	case p.helped:
		return true, nil
	case err != nil:
		return false, text.WithHint(err, p.hint())
	}
	return false, nil
}

// typedFlags returns the names of the flags among arguments that Take and Pair have written out.
func typedFlags(args []string) (names []string) {
	for _, arg := range args {
		name, IsFlag := strings.CutPrefix(arg, "--")
		if name, _, _ = strings.Cut(name, "="); IsFlag && name == "" {
			return names
		} else if IsFlag {
			names = append(names, name)
		}
	}
	return names
}

// hint says what kong cannot know: the flag may be meant for the command to run, or for a program with the name of one
// of retry's commands.
func (p *Parser) hint() string {
	if p.name == "run" {
		return "retry --help lists the flags; what follows -- is the command"
	}
	if p.name == "wait" {
		return "retry wait HOST:PORT && COMMAND; to run a program named wait: retry -- wait"
	}
	program, _, _ := strings.Cut(p.name, " ")
	return fmt.Sprintf("retry %s --help; to run a program named %s: retry -- %[2]s", p.name, program)
}

// Pair joins each flag among the words after a command's name with its value, which may begin with a dash. What follows
// a -- stays as it is.
func (p *Parser) Pair(words []string) (paired []string, err error) {
	for len(words) > 0 {
		taken, rest := words[:1], words[1:]
		if words[0] == "--" {
			return append(paired, words...), nil
		}
		if IsFlag(words[0]) {
			if taken, rest, err = p.Take(words); err != nil {
				return nil, err
			}
		}
		paired, words = append(paired, taken...), rest
	}
	return paired, nil
}

// IsFlag reports whether an argument is a flag, or several letters; a single dash is a word.
func IsFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// Take reads the first argument as a flag, or as several letters, with the value that belongs to it.
func (p *Parser) Take(args []string) (taken, rest []string, err error) {
	name, isLong := strings.CutPrefix(args[0], "--")
	if !isLong {
		name = args[0][1:]
		if word, _, _ := strings.Cut(name, "="); !p.isLongFlag(word) {
			return p.takeLetters(args)
		}
	}
	name, value, attached := strings.Cut(name, "=")
	written := strings.TrimSuffix(args[0], "="+value)
	found, err := p.find(name, written)
	switch {
	case err != nil:
		return nil, nil, err
	case found.flag.IsBool() && attached: // --quiet=false
		return []string{"--" + found.flag.Name + "=" + value}, args[1:], nil
	case !found.takesValue():
		taken, err = p.write(found, written, "")
		return taken, args[1:], err
	}
	return p.takeValue(found, written, value, attached, args[1:])
}

func (p *Parser) takeLetters(args []string) (taken, rest []string, err error) {
	letters := args[0][1:]
	for i, r := range letters {
		letter := string(r)
		found, err := p.find(letter, "-"+letter)
		if err != nil {
			return nil, nil, p.unknownLetters(letters, letter, err)
		}
		var more []string
		if found.takesValue() {
			attached := strings.TrimPrefix(letters[i+len(letter):], "=")
			more, rest, err = p.takeValue(found, "-"+letter, attached, attached != "", args[1:])
			if p.name == "http" && letter == "n" && err == nil && strings.ContainsAny(more[0], ":/.") { // a URL
				err = errors.New("-n is the number of attempts here\nhint: --netrc is what curl calls -n")
			}
			return append(taken, more...), rest, err
		}
		if more, err = p.write(found, "-"+letter, ""); err != nil {
			return nil, nil, err
		}
		taken = append(taken, more...)
	}
	return taken, args[1:], nil
}

// foundFlag is a flag of the command, and what a typed value becomes: another tool's flag may have a value of its own.
type foundFlag struct {
	flag     *kong.Flag
	template string // with a % in place of the value
}

func (f foundFlag) takesValue() bool { return !f.flag.IsBool() && strings.Contains(f.template, "%") }

// find looks a flag up by its name or letter: one of the command's own, or another tool's that means the same.
func (p *Parser) find(name, written string) (foundFlag, error) {
	if flag := p.known[name]; flag != nil {
		return foundFlag{flag, "%"}, nil
	}
	as, hint := flags.Habit(p.name, name)
	target, template, _ := strings.Cut(as, "=")
	switch {
	case as != "" && p.known[target] != nil:
		return foundFlag{p.known[target], template}, nil
	case hint != "":
		return foundFlag{}, fmt.Errorf("unknown flag %s\nhint: %s", written, hint)
	}
	return foundFlag{}, p.unknownFlag(name, written)
}

// isLongFlag reports whether a word behind a single dash is a long flag all the same, as Go's flags are written. curl
// takes it for letters.
func (p *Parser) isLongFlag(word string) bool {
	if len(word) < 2 || p.name == "http" {
		return false
	}
	as, hint := flags.Habit(p.name, word)
	return p.known[word] != nil || (p.name == "run" || p.name == "grpc") && as+hint != ""
}

// takeValue pairs a flag with its value, which is attached or the next argument.
func (p *Parser) takeValue(f foundFlag, written, value string, attached bool,
	rest []string) ([]string, []string, error) {
	if !attached {
		if len(rest) == 0 || rest[0] == "--" {
			return nil, nil, fmt.Errorf("%s needs a value\nhint: --%s=%s", written, f.flag.Name, f.flag.FormatPlaceHolder())
		}
		value, rest = rest[0], rest[1:]
	}
	taken, err := p.write(f, written, value)
	return taken, rest, err
}

// write writes a flag for kong. It refuses two ways to set the same where one of them is another tool's: of --delay and
// --max-delay one would be lost.
func (p *Parser) write(f foundFlag, written, value string) ([]string, error) {
	name := f.flag.Name
	if f.flag.IsBool() {
		return []string{"--" + name}, nil
	}
	value = strings.Replace(f.template, "%", value, 1)
	before := p.given[name]
	p.given[name] = spelling{written, value}
	otherName := before.written != "" && before.written != written
	if otherName && !f.flag.IsCumulative() && p.isForeign(written, before.written) {
		hint := "give one of them"
		if name == "backoff" {
			hint = "-b exp:2s..30s has a first wait and a longest one"
		}
		return nil, fmt.Errorf("%s and %s both set --%s\nhint: %s", before.written, written, name, hint)
	}
	return []string{"--" + name + "=" + value}, nil
}

// isForeign reports whether one of the flags is another tool's.
func (p *Parser) isForeign(written ...string) bool {
	return slices.ContainsFunc(written, func(flag string) bool { return p.known[strings.TrimLeft(flag, "-")] == nil })
}

// CheckTimes refuses -t 3 -d 5, which is three attempts for Debian's retry: here each would be stopped after 3 seconds.
func (p *Parser) CheckTimes() error {
	timeout := p.given["timeout"]
	if p.given["backoff"].written != "-d" || timeout.written != "-t" || strings.Trim(timeout.value, "0123456789") != "" {
		return nil
	}
	return fmt.Errorf("-t %s with -d is a number of attempts for some, and stops each attempt after %[1]s seconds here"+
		"\nhint: -n %[1]s for the attempts, -t %[1]ss for the timeout; -b is the wait", timeout.value)
}

// unknownFlag is the error for a flag that nobody knows. It names the nearest that is in the help.
func (p *Parser) unknownFlag(name, written string) error {
	var visible []string
	for _, f := range p.Model.Flags {
		if !f.Hidden {
			visible = append(visible, f.Name)
		}
	}
	if found := text.Nearest(name, visible); found != "" && len(name) > 1 {
		return text.WithHint(fmt.Errorf("unknown flag %s, did you mean --%s?", written, found), p.hint())
	}
	return text.WithHint(errors.New("unknown flag "+written), p.hint())
}

// unknownLetters completes the error for letters of which one is not a flag.
func (p *Parser) unknownLetters(letters, letter string, err error) error {
	swapped := strings.ToLower(letter)
	if swapped == letter {
		swapped = strings.ToUpper(letter)
	}
	as, hint := flags.Habit(p.name, letter)
	switch {
	case p.known[letters] != nil && len(letters) > 1:
		return fmt.Errorf("unknown flag -%s, did you mean --%[1]s?", letters)
	case as+hint != "":
		return err
	case len(letters) > 2: // a long flag with one dash
		word, _, _ := strings.Cut(letters, "=")
		return p.unknownFlag(word, "-"+word)
	case p.name == "http": // no suggestion: curl's upper and lower case letters mean different things
		return fmt.Errorf("unknown flag -%s"+
			"\nhint: retry http --help lists the flags; they are those of curl that make sense here", letter)
	case p.known[swapped] != nil:
		return fmt.Errorf("unknown flag -%s, did you mean -%s?", letter, swapped)
	}
	return err
}
