package cli

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/task"
)

// policyKey is one setting of a policy: --kill-after, RETRY_KILL_AFTER and kill-after = in the config file. All come from the fields
// of policyFlags, so that none can be forgotten.
type policyKey struct {
	name  string
	field int
	kind  keyKind
}

// text is what is said of the key's flag.
func (k *policyKey) text() *flagText { return textOf("", k.name) }

// keyKind says what values a key takes.
type keyKind string

const (
	keyCount      keyKind = "a whole number"
	keySpec       keyKind = "a text"
	keyDuration   keyKind = "a text or a number of seconds"
	keyConditions keyKind = "a text, a number or a list of them"
	keyNone       keyKind = "" // no key of the config file
)

// kindOf tells what a field's type takes.
func kindOf(field reflect.Type) keyKind {
	switch field {
	case reflect.TypeFor[*flags.Count]():
		return keyCount
	case reflect.TypeFor[*string]():
		return keySpec
	case reflect.TypeFor[*flags.Duration]():
		return keyDuration
	case reflect.TypeFor[[]string]():
		return keyConditions
	}
	return keyNone
}

// elsewhere says of a flag that is no key of the config file what to write there.
func elsewhere(flag string) string {
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

// policyKeys are all settings in the order of their flags.
var policyKeys = sync.OnceValue(func() (keys []policyKey) {
	flags := reflect.TypeFor[policyFlags]()
	for i := range flags.NumField() {
		f := flags.Field(i)
		key := policyKey{name: dashed(f.Name), field: i, kind: kindOf(f.Type)}
		if elsewhere(key.name) != "" {
			key.kind = keyNone
		}
		keys = append(keys, key)
	}
	return keys
})

// fileKeys are those of the config file.
func fileKeys() (keys []policyKey) {
	for _, k := range policyKeys() {
		if k.kind != keyNone {
			keys = append(keys, k)
		}
	}
	return keys
}

// keyNamed returns nil for what is no key of the config file.
func keyNamed(name string) *policyKey {
	for _, k := range fileKeys() {
		if k.name == name {
			return &k
		}
	}
	return nil
}

// dashed is kill-after for KillAfter, as kong names flags.
func dashed(field string) string {
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// variable is the name of a flag in the environment.
func variable(flag string) string {
	return "RETRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// value is the key's field.
func (k *policyKey) value(f *policyFlags) reflect.Value {
	return reflect.ValueOf(f).Elem().Field(k.field)
}

// given reports whether the flags have a value for the key.
func (k *policyKey) given(f *policyFlags) bool { return !k.value(f).IsNil() }

// set reads a value as the flag would. Conditions come one by one.
func (k *policyKey) set(f *policyFlags, text string) error {
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
func (k *policyKey) check(f *policyFlags) (err error) {
	if !k.given(f) {
		return nil
	}
	text, _ := k.value(f).Interface().(*string)
	switch {
	case text != nil && *text == "":
		return fmt.Errorf("it is empty\nhint: leave it out, or write %s", k.text().example)
	case k.name == "backoff":
		_, err = backoff.Parse(*text, "")
	case k.name == "jitter":
		_, err = backoff.Parse("constant:1s", *text) // which takes any
	}
	if list, ok := k.value(f).Interface().([]string); ok {
		_, err = task.ParseConditions(list)
	}
	return err
}

// check reads all values, each alone; name is how a person wrote the key.
func (f *policyFlags) check(name func(key string) string) error {
	for _, k := range policyKeys() {
		if err := k.check(f); err != nil {
			return fmt.Errorf("%s: %w", name(k.name), err)
		}
	}
	return nil
}

// over returns the flags with what they leave out taken from others. Attempts and retries are one thing said in two ways.
func (f *policyFlags) over(others *policyFlags) *policyFlags {
	merged := *others
	if f.Attempts != nil || f.Retries != nil {
		merged.Attempts, merged.Retries = nil, nil
	}
	for _, k := range policyKeys() {
		if k.given(f) {
			k.value(&merged).Set(k.value(f))
		}
	}
	return &merged
}
