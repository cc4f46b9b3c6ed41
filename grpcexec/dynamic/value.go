package dynamic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// shape is what a value of JSON is.
type shape string

const (
	null   shape = "null"
	truth  shape = "a bool"
	number shape = "a number"
	quoted shape = "a string"
	array  shape = "an array"
	object shape = "an object"
)

// value is a value of JSON. Unlike a map it keeps the order of an object's members.
type value struct {
	shape shape
	text  string // of a string or a number; "true" or "false"
	names []string
	items []value // of an array, or of an object in the order of names
}

// parse reads one value of JSON.
func parse(b []byte) (value, error) {
	if !utf8.Valid(b) {
		return value{}, errors.New("invalid JSON: it is not UTF-8")
	}
	var wrong *json.SyntaxError
	if err := json.Unmarshal(b, new(json.RawMessage)); errors.As(err, &wrong) {
		return value{}, fmt.Errorf("invalid JSON: %w at byte %d", err, wrong.Offset)
	} else if err != nil {
		return value{}, fmt.Errorf("invalid JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	return next(decoder, 0)
}

// next reads the next value. The text was found to be valid.
func next(decoder *json.Decoder, depth int) (v value, err error) {
	if depth > 2*maxDepth { // a field and its message
		return v, errTooDeep
	}
	token, err := decoder.Token()
	switch t := token.(type) {
	case nil:
		return value{shape: null}, err
	case bool:
		return value{shape: truth, text: fmt.Sprint(t)}, err
	case json.Number:
		return value{shape: number, text: t.String()}, err
	case string:
		return value{shape: quoted, text: t}, err
	case json.Delim:
		v.shape = array
		if t == '{' {
			v.shape = object
		}
	}
	seen := map[string]bool{}
	for decoder.More() {
		if v.shape == object {
			token, err = decoder.Token()
			name, _ := token.(string)
			if err == nil && seen[name] {
				err = fmt.Errorf("the name %q is there twice", name)
			}
			if err != nil {
				return v, err
			}
			seen[name] = true
			v.names = append(v.names, name)
		}
		item, err := next(decoder, depth+1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
	_, err = decoder.Token()
	return v, err
}

// fieldError says which field of a message an error is about.
type fieldError struct {
	path string // "items[2].price"
	err  error
}

func (e *fieldError) Error() string { return "field " + e.path + ": " + e.err.Error() }

func (e *fieldError) Unwrap() error { return e.err }

// at puts a step before the path of an error: a name, or an index in brackets.
func at(step string, err error) error {
	if err == nil {
		return nil
	}
	var inner *fieldError
	if !errors.As(err, &inner) {
		return &fieldError{step, err}
	}
	if strings.HasPrefix(inner.path, "[") {
		return &fieldError{step + inner.path, inner.err}
	}
	return &fieldError{step + "." + inner.path, inner.err}
}
