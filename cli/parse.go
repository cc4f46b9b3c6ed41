package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

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
		return withHint(err, fmt.Sprintf("retry %s --help; to run a program named %s: retry -- %[2]s", line.subcommand, program))
	}
	return withHint(err, "retry --help lists the flags; what follows -- is the command")
}

// withHint adds a hint to an error that has none.
func withHint(err error, hint string) error {
	if strings.Contains(err.Error(), "\nhint: ") {
		return err
	}
	return fmt.Errorf("%w\nhint: %s", err, hint)
}

// duration is a flag's value such as 1h30m, 2d or 45 (seconds).
type duration time.Duration

// UnmarshalText reads the value of a flag.
func (d *duration) UnmarshalText(txt []byte) error {
	value, err := text.ParseDuration(string(txt))
	*d = duration(value)
	return err
}

// count is a flag's value that is a whole number of 0 or more.
type count int

// maxCount is far beyond use and far below overflow.
const maxCount = 1_000_000_000

// UnmarshalText reads the value of a flag.
func (c *count) UnmarshalText(text []byte) error {
	var n int
	if _, err := fmt.Sscanf(string(text)+"\n", "%d\n", &n); err != nil || n < 0 || n > maxCount {
		return fmt.Errorf("%q is no whole number from 0 to %d", text, maxCount)
	}
	*c = count(n)
	return nil
}

// moment is a flag's value that is a time: RFC 3339, or 15:04 for the next time the clock shows that.
type moment time.Time

// UnmarshalText reads the value of a flag.
func (m *moment) UnmarshalText(text []byte) error {
	value, err := parseMoment(string(text), time.Now())
	*m = moment(value)
	return err
}

func parseMoment(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, errors.New(`"` + text + "\" is no time\nhint: write 23:30, or RFC 3339 like 2026-01-02T23:30:00+01:00")
	}
	t := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
	if t.Before(now) {
		t = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	}
	return t, nil
}
