package policies

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// parse reads the content of a file. A file that is not TOML has no policies, and that is its only mistake.
func parse(path string, data []byte) (*File, []*Mistake) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // the byte order mark that some editors write
	f := &File{Path: path, data: data, policies: map[string]map[string]any{}}
	root := map[string]any{}
	err := toml.Unmarshal(data, &root)
	if err == nil {
		r := &reader{file: f}
		r.root(root)
		f.mistakes = r.sorted()
		return f, f.mistakes
	}
	line := 1
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ = at.Position()
	}
	hint := "TOML has [table], then key = 5 or key = \"text\"; all but numbers stands in quotes"
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		hint = "the file is no text in UTF-8: save it as UTF-8; editors call the other kind UTF-16 or Unicode"
	}
	err = fmt.Errorf("this is no TOML: %s\nhint: %s", strings.TrimPrefix(err.Error(), "toml: "), hint)
	f.notTOML, f.mistakes = true, []*Mistake{{Path: path, Line: line, Err: err}}
	return f, f.mistakes
}

// Mistake is a mistake in a file.
type Mistake struct {
	Path string
	Line int
	Key  string // dotted; "" where the mistake belongs to none
	Err  error  // may end with a line of hint

	policy string // whose table it is in; "" where it is in none
	table  string // the first key
}

// Error begins like the message of a compiler, so that editors find the place.
func (m *Mistake) Error() string {
	place := fmt.Sprintf("%s:%d: ", m.Path, m.Line)
	if m.Key != "" {
		place += m.Key + ": "
	}
	return place + m.Err.Error()
}

// reader reads the tables of a file and collects what is wrong with them.
type reader struct {
	file     *File
	table    []string // the keys that lead to the table that is being read
	mistakes []*Mistake
}

// mistake notes what is wrong at a key of the table. The number of a rule helps to find its line, and is not shown.
func (r *reader) mistake(err error, keys ...string) {
	keys = slices.Concat(r.table, keys)
	m := &Mistake{Path: r.file.Path, Line: r.file.Line(keys...), Err: err}
	if len(keys) > 0 {
		m.table = keys[0]
	}
	if len(keys) > 1 && keys[0] == policyTable {
		m.policy = keys[1]
	}
	if len(keys) > 3 { // policy, its name, rule, a number
		keys = slices.Delete(keys, 3, 4)
	}
	m.Key = dottedKey(keys...)
	r.mistakes = append(r.mistakes, m)
}

// sorted returns the mistakes in the order of the file.
func (r *reader) sorted() []*Mistake {
	slices.SortStableFunc(r.mistakes, func(a, b *Mistake) int {
		return cmp.Or(a.Line-b.Line, strings.Compare(a.Key, b.Key))
	})
	return r.mistakes
}

// joined returns mistakes as one error; nil where there are none.
func joined(mistakes []*Mistake) error {
	all := make([]error, len(mistakes))
	for i, m := range mistakes {
		all[i] = m
	}
	return errors.Join(all...)
}

// Place writes where a key is: FILE:LINE.
func (f *File) Place(keys ...string) string { return fmt.Sprintf("%s:%d", f.Path, f.Line(keys...)) }

// Line returns the line of a key, or of the nearest table around it that has a line of its own.
func (f *File) Line(keys ...string) int {
	if f.lines == nil {
		f.findLines()
	}
	for n := len(keys); n > 0; n-- {
		if line, found := f.lines[strings.Join(keys[:n], "\x00")]; found {
			return line
		}
	}
	return 1
}

// findLines parses one statement after the other, since go-toml tells only the lines of syntax errors. Each table of a
// list has a number, and its keys are found below the name of the list and that number.
func (f *File) findLines() {
	f.lines = map[string]int{}
	var table []string
	sizes := map[string]int{} // how many tables each list has so far
	first, statement := 1, ""
	for i, line := range strings.Split(string(f.data), "\n") {
		statement += line + "\n"
		var parsed map[string]any
		if toml.Unmarshal([]byte(statement), &parsed) != nil {
			continue // the value goes on in the next line
		}
		keys, start := soleKeys(parsed), strings.TrimLeft(statement, " \t")
		if !strings.HasPrefix(start, "[") {
			keys = slices.Concat(table, keys)
		} else {
			table = keys
		}
		f.note(first, keys)
		if strings.HasPrefix(start, "[[") {
			list := strings.Join(keys, "\x00")
			table = slices.Concat(keys, []string{strconv.Itoa(sizes[list])})
			sizes[list]++
			f.note(first, table)
		}
		first, statement = i+2, ""
	}
}

// note keeps the line of each table on the way to a key, and of the key, unless an earlier line has named it.
func (f *File) note(line int, keys []string) {
	for i := range keys {
		key := strings.Join(keys[:i+1], "\x00")
		if _, found := f.lines[key]; !found {
			f.lines[key] = line
		}
	}
}

// soleKeys returns the keys that lead into the tables of a statement, as long as each table has one key.
func soleKeys(table map[string]any) (keys []string) {
	for len(table) == 1 {
		for key, value := range table {
			keys = append(keys, key)
			table, _ = value.(map[string]any)
			if list, isList := value.([]any); isList && len(list) == 1 {
				table, _ = list[0].(map[string]any)
			}
		}
	}
	return keys
}

// dottedKey writes a dotted key as TOML has it.
func dottedKey(parts ...string) string {
	const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	written := make([]string, len(parts))
	for i, part := range parts {
		written[i] = part
		if part == "" || strings.Trim(part, bare) != "" {
			written[i] = quote(part)
		}
	}
	return strings.Join(written, ".")
}

// quote writes a text as a TOML string in one line. What is no UTF-8 becomes U+FFFD.
func quote(text string) string {
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
