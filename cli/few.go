package cli

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/10f93571/retry/cli/syntax"
)

// parseFew parses the line of a run without a model of all its flags, which takes kong a fifth of a start. It gives
// kong those groups of flags alone that the arguments may name. It returns nil where they are not those of a run, where
// help is asked for, and where something is wrong: then the whole model has its say.
func (p *Process) parseFew() *runCommand {
	if len(p.Args) > 0 && p.Args[0] != "run" && newCommand(p.Args[0]) != nil {
		return nil
	}
	run := &runCommand{}
	fields := reflect.ValueOf(run).Elem()
	setDefaults(fields)
	newParser := sync.OnceValues(func() (*syntax.Parser, error) {
		groups := groupsOf(fields, namesIn(p.Args))
		return syntax.New(syntax.Command{Name: "run", Groups: groups}, syntax.Output{Stdout: p.Stdout, Stderr: p.Stderr})
	})
	line, err := splitLine(p.Args, newParser)
	if err != nil || line.name != "run" {
		return nil
	}
	run.Command = line.command
	if len(line.flags) == 0 {
		return run
	}
	parser, err := newParser()
	if err == nil {
		_, err = parser.Parse(line.flags, nil)
	}
	if err != nil {
		return nil
	}
	p.Typed = parser.Typed
	return run
}

// namesIn returns what may be the name of a flag among arguments, and all letters that may be one. Some are the values
// of flags, or belong to the command to run.
func namesIn(args []string) (names []string) {
	for _, arg := range args {
		name, isLong := strings.CutPrefix(arg, "--")
		switch {
		case isLong && name == "":
			return names
		case !isLong && syntax.IsFlag(arg):
			name = arg[1:]
			names = append(names, strings.Split(name, "")...)
		case !isLong:
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		names = append(names, name)
	}
	return names
}

// groupsOf returns pointers to the structs among embedded ones whose own fields have one of these names.
func groupsOf(fields reflect.Value, names []string) (groups []any) {
	for i := range fields.NumField() {
		declared := fields.Type().Field(i)
		if declared.Anonymous {
			groups = append(groups, groupsOf(fields.Field(i), names)...)
			continue
		}
		// A field without the tag is named after itself: HelpAll is --help-all.
		name, letter := declared.Tag.Get("name"), declared.Tag.Get("short")
		if slices.ContainsFunc(names, func(n string) bool {
			return n == name || n == letter ||
				name == "" && strings.EqualFold(strings.ReplaceAll(n, "-", ""), declared.Name)
		}) {
			return []any{fields.Addr().Interface()}
		}
	}
	return groups
}

// setDefaults gives the fields of a command the values of their default tags, as a parser does.
func setDefaults(fields reflect.Value) {
	for i := range fields.NumField() {
		field, declared := fields.Field(i), fields.Type().Field(i)
		value := declared.Tag.Get("default")
		switch {
		case declared.Anonymous:
			setDefaults(field)
		case value == "":
		case field.Kind() == reflect.String:
			field.SetString(value)
		default: // a test checks that every value can be read
			_ = field.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(value))
		}
	}
}
