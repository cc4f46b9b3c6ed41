package policies

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/text"
)

// defaultsTable holds what the flags that make no policy are without being typed.
const defaultsTable = "defaults"

// Setting is a flag beside those of a policy: --no-state, the variable RETRY_NO_STATE and no-state in [defaults].
type Setting struct {
	Name  string
	field reflect.StructField
}

// settingGroups are the flags that [defaults] and variables set. What belongs to a single run is left out below.
var settingGroups = sync.OnceValue(func() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[flags.JournalFlags](), reflect.TypeFor[flags.NameFlags](), reflect.TypeFor[flags.SurvivorFlags](),
		reflect.TypeFor[flags.HookFlags](), reflect.TypeFor[flags.EnvironmentFlags](), reflect.TypeFor[flags.OutputFlags](),
		reflect.TypeFor[flags.StreamFlags](), reflect.TypeFor[flags.ProcessGroupFlags](), reflect.TypeFor[flags.StopFlags](),
	}
})

// settingOf returns the setting of a field in one of the groups; nil where it has none.
func settingOf(field reflect.StructField) *Setting {
	name := field.Tag.Get("name")
	if name == "" {
		name = dashed(field.Name)
	}
	if field.Anonymous || slices.Contains([]string{"id", "fresh", "once"}, name) {
		return nil
	}
	return &Setting{Name: name, field: field}
}

// Settings are all of them, in the order of their flags.
var Settings = sync.OnceValue(func() (all []Setting) {
	for _, group := range settingGroups() {
		for i := range group.NumField() {
			if s := settingOf(group.Field(i)); s != nil {
				all = append(all, *s)
			}
		}
	}
	return all
})

// settingNames are the keys of [defaults].
func settingNames() (names []string) {
	for _, s := range Settings() {
		names = append(names, s.Name)
	}
	return names
}

// SetDefaults gives the flags of a command that were not typed the values of variables and of the config file's
// [defaults], of which a variable goes first.
func SetDefaults(command any, typed []string, file *File, environ []string) error {
	isVariable := func(setting string) bool { return strings.HasPrefix(setting, "RETRY_") }
	if (file == nil || file.defaults == nil) && !slices.ContainsFunc(environ, isVariable) {
		return nil
	}
	return setFields(reflect.ValueOf(command).Elem(), false, typed, file, environ)
}

func setFields(group reflect.Value, inGroup bool, typed []string, file *File, environ []string) error {
	for i := range group.NumField() {
		field, declared := group.Field(i), group.Type().Field(i)
		if declared.Anonymous && field.Kind() == reflect.Struct {
			err := setFields(field, slices.Contains(settingGroups(), declared.Type), typed, file, environ)
			if err != nil {
				return err
			}
		}
		s := settingOf(declared)
		if !inGroup || s == nil || slices.Contains(typed, s.Name) || slices.Contains(typed, opposite(s.Name)) {
			continue
		}
		if value, _ := flags.LookUp(environ, Variable(s.Name)); value != "" {
			if err := s.set(field, value); err != nil {
				return text.WithHint(fmt.Errorf("in the environment (%s): %w", Variable(s.Name), err),
					"correct the variable, or unset it")
			}
			continue
		}
		if file != nil {
			for _, value := range file.defaults[s.Name] {
				_ = s.set(field, value) // it was checked when the file was read
			}
		}
	}
	return nil
}

// opposite is the flag that a flag excludes: a default gives way to what is typed.
func opposite(name string) string {
	for _, pair := range [][2]string{{"no-state", "require-state"}, {"foreground", "group"}, {"quiet", "verbose"}} {
		if at := slices.Index(pair[:], name); at >= 0 {
			return pair[1-at]
		}
	}
	return ""
}

// set reads a value as the flag would. Values of a list come one by one, or with commas where the flag takes them so.
func (s *Setting) set(field reflect.Value, value string) error {
	choices := s.choices()
	switch {
	case choices != nil && !slices.Contains(choices, value):
		return fmt.Errorf("invalid value %q\nhint: %s", value, hintFor(value, choices, "did you mean %s?",
			"write "+strings.Join(choices, ", ")))
	case field.Kind() == reflect.Bool:
		yes, err := readSwitch(value)
		field.SetBool(yes)
		return err
	case field.Kind() == reflect.Slice:
		items := []string{value}
		if s.field.Tag.Get("sep") != "none" {
			items = strings.Split(value, ",")
		}
		for _, item := range items {
			read := reflect.New(field.Type().Elem())
			if err := readInto(read.Elem(), item); err != nil {
				return err
			}
			field.Set(reflect.Append(field, read.Elem()))
		}
		return nil
	case field.Kind() == reflect.Pointer:
		read := reflect.New(field.Type().Elem())
		err := readInto(read.Elem(), value)
		field.Set(read)
		return err
	}
	return readInto(field, value)
}

// choices are the values that the flag can have; nil where they are not counted.
func (s *Setting) choices() []string {
	if list := s.field.Tag.Get("enum"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

func readInto(field reflect.Value, value string) error {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(value))
	}
	if field.Kind() == reflect.Uint64 {
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			return fmt.Errorf("invalid number %q", value)
		}
		field.SetUint(n)
		return nil
	}
	field.SetString(value)
	return nil
}

// readSwitch reads the value of a flag that is on or off.
func readSwitch(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("invalid value %q\nhint: write 1 or 0, or true or false", value)
}

// defaultValues reads the [defaults] of a file. A mistake leaves its key out.
func (r *reader) defaultValues(table map[string]any) {
	r.table = []string{defaultsTable}
	defer func() { r.table = nil }()
	r.file.defaults = map[string][]string{}
	for key, value := range table {
		at := slices.IndexFunc(Settings(), func(s Setting) bool { return s.Name == key })
		if at < 0 {
			r.mistake(fmt.Errorf("unknown key\nhint: %s", unknownDefaultHint(key)), key)
			continue
		}
		words, err := Settings()[at].words(value)
		if err != nil {
			r.mistake(err, key)
			continue
		}
		r.file.defaults[key] = words
	}
}

func unknownDefaultHint(key string) string {
	if keyNamed(key) != nil {
		return "put it below [policy.default], which is what a run without -p uses"
	}
	return hintFor(key, settingNames(), "did you mean %s?", "the keys of [defaults] are "+strings.Join(settingNames(), ", "))
}

// words returns a value of the file as it would be written for the flag, after a check.
func (s *Setting) words(value any) ([]string, error) {
	items, isList := value.([]any)
	switch {
	case !isList:
		items = []any{value}
	case s.field.Type.Kind() != reflect.Slice:
		return nil, errors.New("a list where one value belongs\nhint: for example " + s.example())
	}
	var words []string
	for _, item := range items {
		kind, wanted := keyDuration, "a text or a number"
		if _, isSwitch := item.(bool); isSwitch || s.isSwitch() {
			if !isSwitch || !s.isSwitch() {
				if s.isSwitch() {
					wanted = "true or false"
				}
				return nil, fmt.Errorf("%s where %s belongs\nhint: for example %s", kindOfValue(item), wanted, s.example())
			}
			words = append(words, fmt.Sprint(item))
			continue
		}
		word, ok := textIn(kind, item)
		if !ok {
			return nil, fmt.Errorf("%s where %s belongs\nhint: for example %s", kindOfValue(item), wanted, s.example())
		}
		if err := s.set(reflect.New(s.field.Type).Elem(), word); err != nil {
			return nil, text.WithHint(err, "for example "+s.example())
		}
		words = append(words, word)
	}
	return words, nil
}

func (s *Setting) isSwitch() bool { return s.field.Type.Kind() == reflect.Bool }

// example is the key in a file.
func (s *Setting) example() string {
	switch choices := s.choices(); {
	case s.isSwitch():
		return s.Name + " = true"
	case choices != nil:
		return s.Name + " = " + quote(choices[len(choices)-1])
	case s.field.Type == reflect.TypeFor[*flags.Duration]():
		return s.Name + ` = "5m"`
	case s.field.Type == reflect.TypeFor[flags.Size]():
		return s.Name + ` = "512M"`
	case s.field.Type == reflect.TypeFor[*uint64]():
		return s.Name + " = 1"
	}
	return s.Name + ` = "` + s.field.Tag.Get("placeholder") + `"`
}

// schema says what values the key takes.
func (s *Setting) schema() object {
	schema := object{"description": s.field.Tag.Get("help")}
	word := []object{{"type": "string"}, {"type": "number", "minimum": 0}}
	switch choices := s.choices(); {
	case s.isSwitch():
		schema["type"] = "boolean"
	case choices != nil:
		schema["enum"] = choices
	case s.field.Type.Kind() == reflect.Slice:
		schema["anyOf"] = append(word, object{"type": "array", "items": object{"anyOf": word}})
	default:
		schema["anyOf"] = word
	}
	return schema
}

func defaultSchemas() object {
	all := object{}
	for _, s := range Settings() {
		all[s.Name] = s.schema()
	}
	return all
}
