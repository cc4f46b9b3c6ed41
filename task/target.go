package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Target is what a task sends if it runs no command, for example an HTTP request. The package of each kind registers it
// with RegisterTarget; the rest of the program knows only these methods.
type Target interface {
	Kind() Kind
	Title() string      // in one line, without secrets
	Verb() string       // what a message calls it: "POST"
	Endpoint() Endpoint // what statistics group by
	Host() string       // the authority of its URL in lower case, without the usual port

	Safe() bool                    // sending it twice does what sending it once does
	KeyLifetime() time.Duration    // how long the idempotency key that it sends is valid; 0 = for ever, or none is sent
	MaxServerDelay() time.Duration // the longest delay that a server may ask for; 0 = any
	ReadsStdin() bool
	SameWork(other Target) bool // both do the same; their limits may differ

	Details(finished bool, mask string) Details // mask is a regular expression for what must not be shown
}

// Apart is what a journal keeps beside the JSON of a target. It differs from task to task, while the JSON that is left,
// the head, is the same for many and is decoded once for all of them.
type Apart struct {
	URL  string // empty: the head has it
	Body []byte // nil: the head has it, or there is none
}

// Splitter is a Target that a journal keeps in two pieces.
type Splitter interface {
	Target
	// Split returns what is stored as JSON, and what is stored beside it.
	Split() (head any, apart Apart)
	// Join returns a target of its own for a decoded head, which it does not change, and what was beside it.
	Join(Apart) (Target, error)
}

// Endpoint is where a target goes, without secrets and without what may differ in each run.
type Endpoint struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

// Details are what people and programs are shown of a target, without secrets.
type Details struct {
	Rows [][2]string // a label and a text, which has to be escaped
	Key  string      // how the idempotency key is sent
	JSON any
}

// decoders read what a journal holds of a target, by its kind.
var decoders = map[Kind]func(stored []byte) (Target, error){}

// RegisterTarget makes a kind of target known to journals, which store it as JSON. Call it from an init function.
func RegisterTarget(kind Kind, decode func(stored []byte) (Target, error)) { decoders[kind] = decode }

// EncodeTarget returns the JSON that a journal holds of a target, and what it holds beside that. JSON would change a
// string that is not UTF-8, such as the name of a file in Latin-1: it is stored with a NUL, which no argument holds,
// and its bytes as characters.
func EncodeTarget(t Target) (stored []byte, apart Apart, err error) {
	head := any(t)
	if s, ok := t.(Splitter); ok {
		head, apart = s.Split()
	}
	stored, err = json.Marshal(head)
	if err != nil || !bytes.Contains(stored, []byte(`\ufffd`)) && !bytes.Contains(stored, []byte(`\u0000`)) {
		return stored, apart, err // JSON writes the former for a wrong byte
	}
	stored, err = json.Marshal(mapStrings(reflect.ValueOf(head), escapeBytes).Interface())
	return stored, apart, err
}

// JoinTarget returns a target of its own for a decoded one, which it does not change, and what a journal holds beside.
func JoinTarget(head Target, apart Apart) (Target, error) {
	if s, ok := head.(Splitter); ok {
		return s.Join(apart)
	}
	return head, nil
}

// DecodeTarget reads the JSON of a target that a journal holds. JoinTarget follows.
func DecodeTarget(kind Kind, stored []byte) (Target, error) {
	decode := decoders[kind]
	if decode == nil {
		return nil, fmt.Errorf("unknown kind of task %q", kind)
	}
	t, err := decode(stored)
	if err == nil && bytes.Contains(stored, []byte(`\u0000`)) {
		t, _ = mapStrings(reflect.ValueOf(t), unescapeBytes).Interface().(Target)
	}
	return t, err
}

func escapeBytes(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, "\x00") {
		return s
	}
	escaped := []rune{0}
	for _, b := range []byte(s) {
		escaped = append(escaped, rune(b))
	}
	return string(escaped)
}

func unescapeBytes(s string) string {
	escaped, ok := strings.CutPrefix(s, "\x00")
	if !ok {
		return s
	}
	var plain []byte
	for _, r := range escaped {
		if r > 0xff { // no text of escapeBytes
			return s
		}
		plain = append(plain, byte(r))
	}
	return string(plain)
}

// mapStrings returns a copy of a value with another text for each string in its exported fields.
func mapStrings(v reflect.Value, change func(string) string) reflect.Value {
	changed := reflect.New(v.Type()).Elem()
	changed.Set(v)
	switch v.Kind() {
	case reflect.String:
		changed.SetString(change(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			changed.Set(reflect.New(v.Type().Elem()))
			changed.Elem().Set(mapStrings(v.Elem(), change))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || v.IsNil() {
			break
		}
		changed.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			changed.Index(i).Set(mapStrings(v.Index(i), change))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				changed.Field(i).Set(mapStrings(v.Field(i), change))
			}
		}
	}
	return changed
}
