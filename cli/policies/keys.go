package policies

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/task"
)

// Key is a setting of a policy: the flag --kill-after, the variable RETRY_KILL_AFTER and kill-after in the config file.
type Key struct {
	Name          string
	Help, Example string
	Kind          keyKind
	field         int // of flags.PolicyFlags
}

// keyKind says what values a key takes.
type keyKind string

// The kinds of value, in the words of the messages.
const (
	keyCount      keyKind = "a whole number"
	keySpec       keyKind = "a text"
	keyDuration   keyKind = "a text or a number of seconds"
	keyConditions keyKind = "a text, a number or a list of them"
	keyCondition  keyKind = "a text or a number" // when, which has no flag
	KeyNone       keyKind = ""                   // no key of the config file
)

// keyKinds are the kinds by the types of the flags.
var keyKinds = map[reflect.Type]keyKind{
	reflect.TypeFor[*flags.Count]():    keyCount,
	reflect.TypeFor[*string]():         keySpec,
	reflect.TypeFor[*flags.Duration](): keyDuration,
	reflect.TypeFor[[]string]():        keyConditions,
}

// Elsewhere says of a flag that is no key of the config file what to write there.
func Elsewhere(flag string) string {
	switch flag {
	case "policy":
		return "a policy of the file begins with the built-in default: write its values out"
	case "retries":
		return "write attempts, which counts the first one too: retries = 4 is attempts = 5"
	case "deadline":
		return "write budget; a time of the clock goes with the run: --deadline"
	}
	return ""
}

// Keys are all settings in the order of their flags.
var Keys = sync.OnceValue(func() (keys []Key) {
	flags := reflect.TypeFor[flags.PolicyFlags]()
	for i := range flags.NumField() {
		f := flags.Field(i)
		key := Key{Name: dashed(f.Name), Kind: keyKinds[f.Type], field: i}
		key.Help, key.Example = f.Tag.Get("help"), f.Tag.Get("example")
		if Elsewhere(key.Name) != "" {
			key.Kind = KeyNone
		}
		keys = append(keys, key)
	}
	return keys
})

// fileKeys are those of the config file.
func fileKeys() []Key {
	return slices.DeleteFunc(slices.Clone(Keys()), func(k Key) bool { return k.Kind == KeyNone })
}

// ruleKeys are those of a rule in the config file.
func ruleKeys() []Key {
	when := Key{Name: "when", Help: "Which outcomes.", Kind: keyCondition, Example: "exit == 75"}
	when.field = keyNamed("retry-on").field
	return []Key{when, *keyNamed("backoff"), *keyNamed("jitter")}
}

func names(keys []Key) (names []string) {
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}

// keyNamed returns nil for what is no key of the config file.
func keyNamed(name string) *Key {
	for _, k := range Keys() {
		if k.Name == name && k.Kind != KeyNone {
			return &k
		}
	}
	return nil
}

// dashed is kill-after for KillAfter, as kong names flags.
func dashed(field string) string {
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 && strings.ToUpper(field) != field {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Variable is the name of a flag in the environment.
func Variable(flag string) string {
	return "RETRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// value is the key's field.
func (k *Key) value(f *flags.PolicyFlags) reflect.Value {
	return reflect.ValueOf(f).Elem().Field(k.field)
}

// Given reports whether the flags have a value for the key.
func (k *Key) Given(f *flags.PolicyFlags) bool { return !k.value(f).IsNil() }

// set reads a value as the flag would. Conditions come one by one.
func (k *Key) set(f *flags.PolicyFlags, text string) error {
	field := k.value(f)
	if list, ok := field.Interface().([]string); ok {
		field.Set(reflect.ValueOf(append(list, text)))
		return k.check(f)
	}
	read := reflect.New(field.Type().Elem())
	if u, ok := read.Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return err
		}
	} else {
		read.Elem().SetString(text)
	}
	field.Set(read)
	return k.check(f)
}

// check reads a value as a policy would: a curve, a jitter, conditions. Whether they fit each other is not asked.
func (k *Key) check(f *flags.PolicyFlags) (err error) {
	if !k.Given(f) {
		return nil
	}
	text, _ := k.value(f).Interface().(*string)
	switch {
	case text != nil && *text == "":
		return fmt.Errorf("it is empty\nhint: leave it out, or write %s", k.Example)
	case k.Name == "backoff":
		_, err = backoff.Parse(*text, "")
	case k.Name == "jitter":
		_, err = backoff.Parse("constant:1s", *text) // which takes any
	}
	if list, ok := k.value(f).Interface().([]string); ok {
		_, err = task.ParseConditions(list)
	}
	return err
}

// CheckFlags checks the value of each flag by itself.
func CheckFlags(f *flags.PolicyFlags) error {
	for _, k := range Keys() {
		if err := k.check(f); err != nil {
			return fmt.Errorf("--%s: %w", k.Name, err)
		}
	}
	return nil
}

// over returns the flags, with others for those that are not given. Attempts and retries set the same thing.
func over(f, others *flags.PolicyFlags) *flags.PolicyFlags {
	merged := *others
	if f.Attempts != nil || f.Retries != nil {
		merged.Attempts, merged.Retries = nil, nil
	}
	for _, k := range Keys() {
		if k.Given(f) {
			k.value(&merged).Set(k.value(f))
		}
	}
	return &merged
}

// object is a part of a JSON schema.
type object map[string]any

// Schema is the schema of the config file, made from the flags like all that reads it.
func Schema() ([]byte, error) {
	properties := schemas(fileKeys())
	properties[ruleKey] = object{
		"description": "Each rule gives one class of outcome its own delay; the first that matches counts.",
		"type":        "array",
		"items": object{
			"type": "object", "additionalProperties": false, "required": []string{"when", "backoff"},
			"properties": schemas(ruleKeys()),
		},
	}
	schema := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "retry's config file",
		"description": "Named policies for retry -p NAME, of which [policy.default] is what a run without -p uses, " +
			"[worker] and [serve] for the flags of these, and [defaults] for the other ones.",
		"type": "object", "additionalProperties": false,
	}
	tables := settingSchemas()
	tables[policyTable] = object{
		"description": "The policies by their names.",
		"type":        "object",
		// What Go calls printable is more than a pattern can say: retry policy check knows it.
		"propertyNames":        object{"minLength": 1, "maxLength": maxPolicyName, "pattern": namePattern},
		"additionalProperties": object{"type": "object", "additionalProperties": false, "properties": properties},
	}
	schema["properties"] = tables
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(schema)
	return text.Bytes(), err
}

func schemas(keys []Key) object {
	all := object{}
	for _, k := range keys {
		all[k.Name] = k.schema()
	}
	return all
}

const (
	namePattern     = `^[^/\x00-\x20\x7f-\x9f]([^/\x00-\x1f\x7f-\x9f]*[^/\x00-\x20\x7f-\x9f])?$`
	durationPattern = `^\+?(` + numberPattern + ` *` + unitPattern + ` *)*` + numberPattern + `( *` + unitPattern + `)? *$`
	numberPattern   = `([0-9]+\.?[0-9]*|\.[0-9]+)`
	unitPattern     = `(ns|us|µs|μs|ms|s|m|h|d|w|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?)`
	jitterPattern   = `^(none|full|equal|decorrelated|phase|\s*±?\s*[0-9.]+\s*%|add:.+)$`
)

func curvePattern() string {
	names := []string{`[a-z]+:[\s\S]+`}
	for _, p := range backoff.Presets() {
		names = append(names, p.Name)
	}
	for _, name := range backoff.Curves() {
		if _, err := backoff.Parse(name, ""); err == nil { // it has a usual form
			names = append(names, name)
		}
	}
	return "^(" + strings.Join(names, "|") + ")$|" + durationPattern
}

// schema says what values the key takes.
func (k *Key) schema() object {
	s := object{"description": k.Help}
	switch k.Kind {
	case keyCount:
		s["type"], s["minimum"], s["maximum"], s["examples"] = "integer", 0, flags.MaxCount, []any{json.Number(k.Example)}
	case keySpec:
		s["type"], s["pattern"], s["examples"] = "string", jitterPattern, []any{k.Example}
		if k.Name == "backoff" {
			s["pattern"] = curvePattern()
		}
	case keyDuration:
		seconds := object{"type": "number", "minimum": 0, "maximum": int64(9223372036), "description": "Seconds."}
		s["anyOf"], s["examples"] = []object{{"type": "string", "pattern": durationPattern}, seconds}, []any{k.Example}
	case keyCondition:
		s["anyOf"], s["examples"] = oneCondition(), []any{k.Example}
	case keyConditions:
		list := object{"type": "array", "items": object{"anyOf": oneCondition()}}
		s["anyOf"], s["examples"] = append(oneCondition(), list), []any{[]any{k.Example}}
	}
	return s
}

func oneCondition() []object {
	const help = "A list such as 1,75,100-120,SIGSEGV,signal,timeout,any, or an expression."
	return []object{
		{"type": "string", "pattern": `\S`, "description": help},
		{"type": "integer", "minimum": 0, "maximum": math.MaxInt32, "description": "An exit code."},
	}
}
