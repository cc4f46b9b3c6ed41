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

const syntaxHint = "\nhint: TOML has [table], then key = 5 or key = \"text\"; all but numbers stands in quotes"

// parse reads the content of a file. A file that is no TOML has no policies, and that is its only mistake.
func parse(path string, data []byte) (*File, []*Mistake) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	f := &File{Path: path, data: data, policies: map[string]map[string]any{}}
	nul := bytes.IndexByte(data, 0)
	if nul >= 0 || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		line, column := position(data[:max(nul, 0)])
		err := errors.New("the file is no text in UTF-8" +
			"\nhint: save it as UTF-8; editors call the other kind UTF-16 or Unicode")
		return f, []*Mistake{{f.Path, line, column, "", err}}
	}
	root := map[string]any{}
	if err := toml.Unmarshal(data, &root); err != nil {
		m := &Mistake{f.Path, 1, 1, "", fmt.Errorf("this is no TOML: %s%s", strings.TrimPrefix(err.Error(), "toml: "), syntaxHint)}
		if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
			m.Line, m.Column = at.Position()
			before := bytes.SplitAfter(data, []byte("\n"))[m.Line-1]
			m.Column = utf8.RuneCount(before[:min(m.Column-1, len(before))]) + 1 // it counts in bytes
		}
		return f, []*Mistake{m}
	}
	return f, f.structure(root)
}

// position returns where a text ends, as an editor counts: both from 1, the column in characters.
func position(before []byte) (line, column int) {
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}

// Mistake is a mistake in a file.
type Mistake struct {
	Path         string
	Line, Column int
	Key          string // dotted; "" where the mistake belongs to none
	Err          error  // may end with a line of hint
}

// Error begins like the message of a compiler, so that editors find the place.
func (m *Mistake) Error() string {
	text := fmt.Sprintf("%s:%d:%d: ", m.Path, m.Line, m.Column)
	if m.Key != "" {
		text += m.Key + ": "
	}
	return text + m.Err.Error()
}

// Unwrap returns what is wrong there.
func (m *Mistake) Unwrap() error { return m.Err }

// keyMistake is a mistake at a key.
func (f *File) keyMistake(err error, keys ...string) *Mistake {
	at := f.find(keys...)
	return &Mistake{f.Path, at.line, at.key, dottedKey(keys...), err}
}

// valueMistake is a mistake at the value of a key; name is what the message calls the key.
func (f *File) valueMistake(err error, name string, keys ...string) *Mistake {
	at := f.find(keys...)
	return &Mistake{f.Path, at.line, at.value, name, err}
}

func sortMistakes(mistakes []*Mistake) {
	slices.SortStableFunc(mistakes, func(a, b *Mistake) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Key, b.Key))
	})
}

// joined returns mistakes as one error; nil where there are none.
func joined(mistakes []*Mistake) error {
	all := make([]error, len(mistakes))
	for i, m := range mistakes {
		all[i] = m
	}
	return errors.Join(all...)
}

// place is where a key stands: a line, the column of the key and that of its value.
type place struct{ line, key, value int }

// Line returns the line of a key, or of the table that it is in.
func (f *File) Line(keys ...string) int { return f.find(keys...).line }

// Place writes where a key is: FILE:LINE.
func (f *File) Place(keys ...string) string { return fmt.Sprintf("%s:%d", f.Path, f.Line(keys...)) }

// find returns the place of a key, or the nearest one that is known: of the table that it is in.
func (f *File) find(keys ...string) place {
	if f.places == nil {
		f.findAll()
	}
	for n := len(keys); n > 0; n-- {
		if at, found := f.places[strings.Join(keys[:n], "\x00")]; found {
			return at
		}
	}
	return place{1, 1, 1}
}

// findAll looks for headers and keys line by line, since go-toml tells the place of a mistake alone. Each table of a
// list is counted: its keys are found below the name of the list and a number. What begins within another value, as in
// braces, is found where that value is.
func (f *File) findAll() {
	f.places = map[string]place{}
	var table []string
	tables := map[string]int{} // how many tables a list has so far
	for i, line := range strings.Split(string(f.data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		start := strings.TrimLeft(line, " \t")
		indent := len(line) - len(start)
		if strings.HasPrefix(start, "[") {
			keys := soleKeys(line)
			if keys == nil {
				continue
			}
			f.put(nil, keys, i+1, line, indent, -1)
			table = keys
			if strings.HasPrefix(start, "[[") {
				name := strings.Join(keys, "\x00")
				table = append(slices.Clone(keys), strconv.Itoa(tables[name]))
				tables[name]++
				at := f.columns(keys, i+1, line, indent, -1)
				f.places[strings.Join(table, "\x00")] = at[len(at)-1]
			}
		} else if equals := strings.Index(line, "="); equals >= 0 {
			value := equals + 1 + len(line[equals+1:]) - len(strings.TrimLeft(line[equals+1:], " \t"))
			f.put(table, soleKeys(line[:equals]+"=0"), i+1, line, indent, value)
		}
	}
}

// put notes the place of each part of a dotted key below a table, but of one that another line has named before.
func (f *File) put(table, keys []string, number int, line string, indent, value int) {
	for i, at := range f.columns(keys, number, line, indent, value) {
		name := strings.Join(slices.Concat(table, keys[:i+1]), "\x00")
		if _, found := f.places[name]; !found {
			f.places[name] = at
		}
	}
}

// columns returns the place of each part of a dotted key in a line; a header has no value.
func (f *File) columns(keys []string, number int, line string, indent, value int) (places []place) {
	from, at := 0, indent
	for _, key := range keys {
		for _, written := range []string{dottedKey(key), key} {
			if found := strings.Index(line[from:], written); found >= 0 {
				at, from = from+found, from+found+len(written)
				break
			}
		}
		if at > 0 && strings.ContainsRune(`"'`, rune(line[at-1])) {
			at-- // the key stands in quotes
		}
		p := place{line: number, key: utf8.RuneCountInString(line[:at]) + 1}
		if p.value = p.key; value >= 0 {
			p.value = utf8.RuneCountInString(line[:value]) + 1
		}
		places = append(places, p)
	}
	return places
}

// soleKeys returns the parts of the only key or header in a line of TOML; nil where the line is neither.
func soleKeys(line string) (keys []string) {
	var table map[string]any
	if toml.Unmarshal([]byte(line), &table) != nil {
		return nil
	}
	for len(table) == 1 {
		for key, value := range table {
			keys = append(keys, key)
			if list, isList := value.([]any); isList && len(list) == 1 {
				value = list[0]
			}
			table, _ = value.(map[string]any)
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
