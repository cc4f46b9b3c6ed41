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

// The tables that hold what the flags that make no policy are without being typed: [worker] those of a worker, also of
// that in retry serve, [serve] those of the API, [defaults] the others.
const (
	defaultsTable = "defaults"
	workerTable   = "worker"
	serveTable    = "serve"
)

// settingTables are these tables, each with what it holds.
var settingTables = []struct{ name, what string }{
	{defaultsTable, "What flags are that are not typed."}, {workerTable, "Flags of retry worker, and of the worker in retry serve."},
	{serveTable, "Flags of retry serve."},
}

func isSettingTable(name string) bool {
	return slices.ContainsFunc(settingTables, func(t struct{ name, what string }) bool { return t.name == name })
}

// Setting is a flag beside those of a policy: --no-state, the variable RETRY_NO_STATE and no-state in [defaults].
type Setting struct {
	Name  string
	table string
	field reflect.StructField
}

type settingGroup struct {
	table  string
	fields reflect.Type
}

// settingGroups are the flags that tables and variables set. What belongs to a single run is left out below.
var settingGroups = sync.OnceValue(func() []settingGroup {
	var groups []settingGroup
	for _, fields := range []reflect.Type{
		reflect.TypeFor[flags.JournalFlags](), reflect.TypeFor[flags.NameFlags](), reflect.TypeFor[flags.SurvivorFlags](),
		reflect.TypeFor[flags.HookFlags](), reflect.TypeFor[flags.EnvironmentFlags](), reflect.TypeFor[flags.OutputFlags](),
		reflect.TypeFor[flags.StreamFlags](), reflect.TypeFor[flags.ProcessGroupFlags](), reflect.TypeFor[flags.StopFlags](),
	} {
		groups = append(groups, settingGroup{defaultsTable, fields})
	}
	return append(groups, settingGroup{workerTable, reflect.TypeFor[flags.WorkerFlags]()},
		settingGroup{serveTable, reflect.TypeFor[flags.ServeFlags]()})
})

// tableOf is the table of a group of flags; empty where it has none.
func tableOf(group reflect.Type) string {
	for _, g := range settingGroups() {
		if g.fields == group {
			return g.table
		}
	}
	return ""
}

// settingOf returns the setting of a field in one of the groups; nil where it has none.
func settingOf(field reflect.StructField, table string) *Setting {
	name := field.Tag.Get("name")
	if name == "" {
		name = dashed(field.Name)
	}
	if field.Anonymous || slices.Contains([]string{"id", "fresh", "once"}, name) {
		return nil
	}
	return &Setting{Name: name, table: table, field: field}
}

// Settings are all of them, in the order of their flags.
var Settings = sync.OnceValue(func() (all []Setting) {
	for _, group := range settingGroups() {
		for i := range group.fields.NumField() {
			if s := settingOf(group.fields.Field(i), group.table); s != nil {
				all = append(all, *s)
			}
		}
	}
	return all
})

// settingNames are the keys of a table.
func settingNames(table string) (names []string) {
	for _, s := range Settings() {
		if s.table == table {
			names = append(names, s.Name)
		}
	}
	return names
}

// SetDefaults gives the flags of a command that were not typed the values of variables and of the config file's
// tables, of which a variable goes first. A mistake in [worker] and [serve] is an error for the commands that these are
// about.
func SetDefaults(command any, typed []string, file *File, environ []string) error {
	isVariable := func(setting string) bool { return strings.HasPrefix(setting, "RETRY_") }
	if (file == nil || file.settings == nil) && !slices.ContainsFunc(environ, isVariable) {
		return nil
	}
	return setFields(reflect.ValueOf(command).Elem(), "", typed, file, environ)
}

func setFields(group reflect.Value, table string, typed []string, file *File, environ []string) error {
	for i := range group.NumField() {
		field, declared := group.Field(i), group.Type().Field(i)
		if declared.Anonymous && field.Kind() == reflect.Struct {
			inner := tableOf(declared.Type)
			if err := file.mistakeIn(inner); err != nil {
				return err
			}
			if err := setFields(field, inner, typed, file, environ); err != nil {
				return err
			}
		}
		s := settingOf(declared, table)
		if table == "" || s == nil || slices.Contains(typed, s.Name) || slices.Contains(typed, opposite(s.Name)) {
			continue
		}
		if value, _ := flags.LookUp(environ, Variable(s.Name)); value != "" {
			if err := s.set(field, value); err != nil {
				return text.WithHint(fmt.Errorf("in the environment (%s): %w", Variable(s.Name), err),
					"correct the variable, or unset it")
			}
			continue
		}
		for _, value := range file.valuesOf(s) {
			_ = s.set(field, value) // it was checked when the file was read
		}
	}
	return nil
}

// valuesOf returns what the file says of a setting. What [defaults] says of a flag of that name holds too.
func (f *File) valuesOf(s *Setting) []string {
	if f == nil {
		return nil
	}
	if values, found := f.settings[s.table][s.Name]; found {
		return values
	}
	return f.settings[defaultsTable][s.Name]
}

// mistakeIn returns the first mistake in [worker] or [serve], where that is the table: a worker must not run with another
// bound than the file says. In a file that is no TOML, that may be anything.
func (f *File) mistakeIn(table string) error {
	if f == nil || table != workerTable && table != serveTable {
		return nil
	}
	for _, m := range f.mistakes {
		if f.notTOML || m.table == table {
			return m
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

// settingValues reads a table of settings. A mistake leaves its key out.
func (r *reader) settingValues(name string, table map[string]any) {
	r.table = []string{name}
	defer func() { r.table = nil }()
	if r.file.settings == nil {
		r.file.settings = map[string]map[string][]string{}
	}
	r.file.settings[name] = map[string][]string{}
	for key, value := range table {
		at := slices.IndexFunc(Settings(), func(s Setting) bool { return s.table == name && s.Name == key })
		if at < 0 {
			r.mistake(fmt.Errorf("unknown key\nhint: %s", unknownSettingHint(name, key)), key)
			continue
		}
		words, err := Settings()[at].words(value)
		if err != nil {
			r.mistake(err, key)
			continue
		}
		r.file.settings[name][key] = words
	}
}

func unknownSettingHint(table, key string) string {
	if keyNamed(key) != nil {
		return "put it below [policy.default], which is what a run without -p uses"
	}
	for _, other := range settingTables {
		if slices.Contains(settingNames(other.name), key) {
			return "put it below [" + other.name + "]"
		}
	}
	names := settingNames(table)
	return hintFor(key, names, "did you mean %s?", "the keys of ["+table+"] are "+strings.Join(names, ", "))
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
		wanted := "a text or a number"
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
		word, ok := textIn(keyDuration, item)
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

func (s *Setting) isNumber() bool {
	return s.field.Type == reflect.TypeFor[flags.Positive]() || s.field.Type == reflect.TypeFor[flags.Count]()
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
	case s.field.Type == reflect.TypeFor[*uint64](), s.isNumber():
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

// settingSchemas are the tables of settings.
func settingSchemas() object {
	tables := object{}
	for _, t := range settingTables {
		all := object{}
		for _, s := range Settings() {
			if s.table == t.name {
				all[s.Name] = s.schema()
			}
		}
		tables[t.name] = object{"description": t.what, "type": "object", "additionalProperties": false, "properties": all}
	}
	return tables
}
