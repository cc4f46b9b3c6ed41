package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maker tells how a table came to be: TOML lets each be defined once.
type maker int

const (
	byPath   maker = iota // a header below it named it: [a] where there is only [a.b]
	byHeader              // its own header, or that of a list
	byDots                // a dotted key
	byBraces              // an inline table, which is whole
)

const syntaxHint = "\nhint: TOML has [table], then key = 5 or key = \"text\"; all but numbers stands in quotes"

// Parse reads the content of a file. Beside an error, which joins an *Error for each mistake, it returns what it could read.
func Parse(path string, data []byte) (*File, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	b := &builder{file: &File{Path: path, Root: newTable(byHeader), data: data[:len(data):len(data)]}}
	if bytes.IndexByte(data, 0) >= 0 || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return b.file, b.file.Errorf(max(bytes.IndexByte(data, 0), 0), "", "the file is no text in UTF-8\nhint: save it as UTF-8; editors call the other kind UTF-16 or Unicode")
	}
	b.parser.Reset(b.file.data)
	b.table = b.file.Root
	for b.parser.NextExpression() {
		b.add(b.parser.Expression())
	}
	if err := b.parser.Error(); err != nil {
		b.syntax(err)
	}
	if len(b.mistakes) == 0 {
		b.confirm()
	}
	return b.file, errors.Join(b.mistakes...)
}

// builder makes a file's tables out of the parser's nodes, and finds what is defined twice.
type builder struct {
	parser   unstable.Parser
	file     *File
	table    *Table // of the latest header; a detached one where that was wrong
	path     []string
	mistakes []error
}

func (b *builder) mistake(offset int, key, format string, args ...any) {
	b.mistakes = append(b.mistakes, b.file.Errorf(offset, key, format, args...))
}

func (b *builder) syntax(err error) {
	offset := len(b.file.data)
	if at := (*unstable.ParserError)(nil); errors.As(err, &at) {
		offset = cap(b.file.data) - cap(at.Highlight)
	}
	b.mistake(offset, "", "this is no TOML: %w%s", err, syntaxHint)
}

// confirm asks the decoder, too: it knows more of numbers and dates than the parser.
func (b *builder) confirm() {
	err := toml.Unmarshal(b.file.data, &map[string]any{})
	if err == nil {
		return
	}
	offset := 0
	if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
		line, column := at.Position()
		offset = b.offset(line, column)
	}
	b.mistake(offset, "", "this is no TOML: %s%s", strings.TrimPrefix(err.Error(), "toml: "), syntaxHint)
}

// offset finds a line and a column in bytes.
func (b *builder) offset(line, column int) (offset int) {
	for range line - 1 {
		offset += bytes.IndexByte(b.file.data[offset:], '\n') + 1
	}
	return offset + column - 1
}

func (b *builder) add(node *unstable.Node) {
	switch node.Kind {
	case unstable.Table, unstable.ArrayTable:
		keys := b.keys(node)
		b.path = names(keys)
		if b.table = b.header(keys, node.Kind == unstable.ArrayTable); b.table == nil {
			b.table = newTable(byHeader) // what follows is read all the same
		}
	case unstable.KeyValue:
		b.keyValue(b.table, b.path, node)
	}
}

// key is a part of a dotted key.
type key struct {
	name   string
	offset int
}

func (b *builder) keys(node *unstable.Node) (keys []key) {
	for it := node.Key(); it.Next(); {
		keys = append(keys, key{string(it.Node().Data), int(it.Node().Raw.Offset)})
	}
	return keys
}

func names(keys []key) (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// header returns the table that a header opens; nil after a mistake.
func (b *builder) header(keys []key, list bool) *Table {
	table := b.file.Root
	for _, k := range keys[:len(keys)-1] {
		if table = b.through(table, k, keys); table == nil {
			return nil
		}
	}
	last := keys[len(keys)-1]
	entry := table.Get(last.name)
	switch {
	case entry == nil && list:
		value := Value{Kind: List, Offset: last.offset, open: true}
		table.put(last, value)
		return table.Get(last.name).lengthen(last.offset)
	case entry == nil:
		return table.put(last, Value{Kind: Tables, Offset: last.offset, Table: newTable(byHeader)}).Table
	case list && entry.Value.open:
		return entry.lengthen(last.offset)
	case !list && entry.Value.Kind == Tables && entry.Value.Table.made == byPath:
		entry.Value.Table.made = byHeader
		return entry.Value.Table
	}
	b.twice(last, entry, names(keys))
	return nil
}

// through goes a step along the path of a header; nil after a mistake.
func (b *builder) through(table *Table, k key, keys []key) *Table {
	entry := table.Get(k.name)
	switch {
	case entry == nil:
		return table.put(k, Value{Kind: Tables, Offset: k.offset, Table: newTable(byPath)}).Table
	case entry.Value.open:
		return entry.Value.Items[len(entry.Value.Items)-1].Table
	case entry.Value.Kind == Tables && entry.Value.Table.made != byBraces:
		return entry.Value.Table
	}
	b.twice(k, entry, names(keys))
	return nil
}

// keyValue puts a key, which may be dotted, into a table.
func (b *builder) keyValue(table *Table, path []string, node *unstable.Node) {
	keys := b.keys(node)
	whole := append(append([]string{}, path...), names(keys)...)
	for _, k := range keys[:len(keys)-1] {
		entry := table.Get(k.name)
		switch {
		case entry == nil:
			table = table.put(k, Value{Kind: Tables, Offset: k.offset, Table: newTable(byDots)}).Table
		case entry.Value.Kind == Tables && entry.Value.Table.made == byDots:
			table = entry.Value.Table
		default:
			b.twice(k, entry, whole)
			return
		}
	}
	last := keys[len(keys)-1]
	if entry := table.Get(last.name); entry != nil {
		b.twice(last, entry, whole)
		return
	}
	table.put(last, b.value(node.Value(), last.offset, whole))
}

func (b *builder) twice(k key, first *Entry, path []string) {
	b.mistake(k.offset, Key(path...), "%s stands here for the second time\nhint: it is in line %d already; keep one of them",
		Key(k.name), b.file.At(first.Offset).Line)
}

// value reads a value; near is where it stands if the parser does not tell.
func (b *builder) value(node *unstable.Node, near int, path []string) Value {
	v := Value{Offset: near, Text: string(node.Data)}
	if node.Raw.Length > 0 {
		v.Offset = int(node.Raw.Offset)
	}
	switch node.Kind {
	case unstable.Array:
		v.Kind = List
		for it := node.Children(); it.Next(); {
			v.Items = append(v.Items, b.value(it.Node(), near, path))
		}
	case unstable.InlineTable:
		v.Kind, v.Table = Tables, newTable(byBraces)
		for it := node.Children(); it.Next(); {
			b.keyValue(v.Table, path, it.Node())
		}
	case unstable.String:
		v.Kind = String
	case unstable.Integer:
		v.Kind = Integer
	case unstable.Float:
		v.Kind = Float
	case unstable.Bool:
		v.Kind = Boolean
	default:
		v.Kind = Date
	}
	return v
}

func newTable(made maker) *Table {
	return &Table{index: map[string]int{}, made: made}
}

// put adds a key that the table has not, and returns its value.
func (t *Table) put(k key, v Value) Value {
	t.index[k.name] = len(t.Entries)
	t.Entries = append(t.Entries, Entry{k.name, k.offset, v})
	return v
}

// lengthen adds a table to a list of tables.
func (e *Entry) lengthen(offset int) *Table {
	table := newTable(byHeader)
	e.Value.Items = append(e.Value.Items, Value{Kind: Tables, Offset: offset, Table: table})
	return table
}
