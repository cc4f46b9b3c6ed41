package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// File is what a config file holds.
type File struct {
	Path string
	Root *Table
	data []byte // what the offsets count in, without a byte order mark
}

// Table is a table with its keys in the order of the file.
type Table struct {
	Entries []Entry
	index   map[string]int
	made    maker
}

// Entry is a key with its value. The key of a table is the first place that names it.
type Entry struct {
	Key    string
	Offset int // of the key, in bytes
	Value  Value
}

// Value is what a key stands for.
type Value struct {
	Kind   Kind
	Offset int    // in bytes
	Text   string // of a string what it says, of any other single value how it is written
	Items  []Value
	Table  *Table
	open   bool // a list that [[key]] made, and may lengthen
}

// Kind is a type of TOML, as a person would call it.
type Kind string

// The kinds of value.
const (
	String  Kind = "a text"
	Integer Kind = "a whole number"
	Float   Kind = "a number with a fraction"
	Boolean Kind = "true or false"
	Date    Kind = "a date or a time"
	List    Kind = "a list"
	Tables  Kind = "a table"
)

// Get returns the entry of a key; nil where there is none.
func (t *Table) Get(key string) *Entry {
	if i, there := t.index[key]; there {
		return &t.Entries[i]
	}
	return nil
}

// Integer returns the number of an Integer; false where it has more than 64 bits.
func (v Value) Integer() (int64, bool) {
	digits := strings.ReplaceAll(v.Text, "_", "")
	n, err := strconv.ParseInt(digits, 0, 64)
	return n, err == nil
}

// Position is a place in a file as an editor counts: both from 1, the column in characters.
type Position struct{ Line, Column int }

// At returns the position of an offset.
func (f *File) At(offset int) Position {
	before := f.data[:min(max(offset, 0), len(f.data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Position{Line: bytes.Count(before, []byte{'\n'}) + 1, Column: utf8.RuneCount(before[start:]) + 1}
}

// Place writes where an offset is: FILE:LINE.
func (f *File) Place(offset int) string {
	return fmt.Sprintf("%s:%d", f.Path, f.At(offset).Line)
}

// Error is a mistake in a file.
type Error struct {
	Path string
	Position
	Key string // dotted; "" where the mistake belongs to none
	Err error  // may end with a line of hint
}

// Errorf returns a mistake at an offset.
func (f *File) Errorf(offset int, key, format string, args ...any) *Error {
	return &Error{Path: f.Path, Position: f.At(offset), Key: key, Err: fmt.Errorf(format, args...)}
}

// Error begins like the message of a compiler, so that editors find the place.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: ", e.Path, e.Line, e.Column)
	if e.Key != "" {
		text += e.Key + ": "
	}
	return text + e.Err.Error()
}

// Unwrap returns what is wrong there.
func (e *Error) Unwrap() error { return e.Err }

// Key writes a dotted key as TOML has it.
func Key(parts ...string) string {
	written := make([]string, len(parts))
	for i, part := range parts {
		written[i] = part
		if part == "" || strings.Trim(part, bareLetters) != "" {
			written[i] = Quote(part)
		}
	}
	return strings.Join(written, ".")
}

const bareLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// Quote writes a text as a TOML string in one line. What is no UTF-8 becomes U+FFFD.
func Quote(text string) string {
	if !strings.ContainsAny(text, `'`) && strings.ContainsAny(text, `"\`) && strings.IndexFunc(text, unprintable) < 0 {
		return "'" + text + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case unprintable(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		case unprintable(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// unprintable is what a terminal would not just draw, or nobody would see.
func unprintable(r rune) bool { return r != ' ' && !strconv.IsPrint(r) || r == utf8.RuneError }

// Mistakes returns the mistakes that an error of Parse joins.
func Mistakes(err error) (mistakes []*Error) {
	switch e := err.(type) { //nolint:errorlint // it takes apart what Parse has joined
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			mistakes = append(mistakes, Mistakes(one)...)
		}
	}
	return mistakes
}
