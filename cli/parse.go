package cli

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/internal/text"
)

// parser fills a subcommand from its flags and words.
type parser struct {
	*kong.Kong
	helped bool // help was asked for, and printed
}

// newParser makes the parser of a subcommand, whose flags are the fields of a struct.
func (p *Process) newParser(name string, fields any) (*parser, error) {
	result := &parser{}
	app, err := kong.New(fields,
		kong.Name("retry"),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { result.helped = true }),
		kong.KindMapper(reflect.String, kong.MapperFunc(asItIs)),
		kong.KindMapper(reflect.Uint64, kong.MapperFunc(asNumber)),
		kong.Help(func(options kong.HelpOptions, ctx *kong.Context) error { return printHelp(name, options, ctx) }),
		kong.ConfigureHelp(kong.HelpOptions{NoAppSummary: true, WrapUpperBound: 110}),
	)
	result.Kong = app
	return result, err
}

// asItIs takes a value with all of its bytes. Kong's own way leads through JSON, and so to another file where a path is no UTF-8.
func asItIs(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(token.String())
	}
	return err
}

// asNumber refuses what is no number in words for people.
func asNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("number")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(token.String(), 0, 64)
	if err != nil {
		return fmt.Errorf("%q is no whole number from 0 to %d", token.String(), uint64(math.MaxUint64))
	}
	target.SetUint(n)
	return nil
}

// parse reports true where it printed help instead.
func (p *parser) parse(line commandLine) (helped bool, err error) {
	flags := newFlagSet(line.subcommand, p.Model)
	words, err := flags.pair(line.words)
	if line.subcommand == "http" {
		err = cmp.Or(flags.checkCurl(line.words), err)
	}
	if err == nil {
		_, err = p.Parse(append(line.flags, words...))
	}
	switch {
	case p.helped:
		return true, nil
	case err != nil:
		return false, usageError(line, err)
	}
	return false, nil
}

// usageError adds what kong cannot know: that a flag may have been meant for a program of the same name as a subcommand.
func usageError(line commandLine, err error) error {
	if line.subcommand != "run" {
		program, _, _ := strings.Cut(line.subcommand, " ")
		return text.WithHint(err, fmt.Sprintf("retry %s --help; to run a program named %s: retry -- %[2]s", line.subcommand, program))
	}
	return text.WithHint(err, "retry --help lists the flags; what follows -- is the command")
}
