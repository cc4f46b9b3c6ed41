package config

import "github.com/pelletier/go-toml/v2/unstable"

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
