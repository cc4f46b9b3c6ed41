package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

const example = `# policies
[policy.deploy]
attempts = 8
backoff  = "exp:2s..2m" # capped
retry-on = ["1,75",
  'stderr matches "x"', 7]
[[policy.deploy.rule]]
when = 'exit == 75'
[[policy.deploy.rule]]
when = "9"
[policy."a b"]
timeout.x = 1.5
inline = { "ä" = {b = true}, c = 2026-01-02 }
`

// show writes what was read with the position of each key and value.
func show(f *File, t *Table, indent string) string {
	var b strings.Builder
	for _, e := range t.Entries {
		fmt.Fprintf(&b, "%s%v %s:%s\n", indent, f.At(e.Offset), Key(e.Key), showValue(f, e.Value, indent))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func showValue(f *File, v Value, indent string) string {
	switch v.Kind {
	case Tables:
		return "\n" + show(f, v.Table, indent+"  ")
	case List:
		text := " list"
		for _, item := range v.Items {
			text += showValue(f, item, indent+"  ")
		}
		return text
	}
	return fmt.Sprintf(" %v %s %s", f.At(v.Offset), v.Kind, v.Text)
}

func TestParse(t *testing.T) {
	const want = `{2 2} policy:
  {2 9} deploy:
    {3 1} attempts: {3 12} a whole number 8
    {4 1} backoff: {4 12} a text exp:2s..2m
    {5 1} retry-on: list {5 13} a text 1,75 {6 3} a text stderr matches "x" {6 25} a whole number 7
    {7 17} rule: list
        {8 1} when: {8 8} a text exit == 75
        {10 1} when: {10 8} a text 9
  {11 9} "a b":
    {12 1} timeout:
      {12 9} x: {12 13} a number with a fraction 1.5
    {13 1} inline:
      {13 12} ä:
        {13 19} b: {13 23} true or false true
      {13 30} c: {13 34} a date or a time 2026-01-02`
	for name, text := range map[string]string{
		"LF": example, "CRLF": strings.ReplaceAll(example, "\n", "\r\n"), "BOM": "\xef\xbb\xbf" + example, "no last line end": strings.TrimSuffix(example, "\n"),
	} {
		f, err := Parse("c.toml", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.ReplaceAll(show(f, f.Root, ""), `"ä"`, "ä"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing quoted", "[policy.x]\nbackoff = exp:1s\n", "c.toml:2:11: this is no TOML: "},
		{"a duration", "ä = 30s\n", "c.toml:1:1: this is no TOML: "},
		{"a unit", "\n  t = 30s\n", "c.toml:2:9: this is no TOML: "},
		{"an open list", "a = [1,\n", "c.toml:1:8: this is no TOML: "},
		{"an open string", "a = \"x", "c.toml:1:6: this is no TOML: "},
		{"an open header", "[policy", "c.toml:1:7: this is no TOML: "},
		{"a bad date", "a = 1\nb = 2026-02-30\n", "c.toml:2:13: this is no TOML: "},
		{"a bad number", "ä = \"ü\"", "c.toml:1:1: "},
		{"UTF-16", "\xff\xfea\x00=\x001\x00", "c.toml:1:4: the file is no text in UTF-8"},
		{"UTF-16, the other way", "\xfe\xff\x00a", "c.toml:1:3: the file is no text in UTF-8"},
		{"a NUL", "a = 1\n\x00", "c.toml:2:1: the file is no text in UTF-8"},
		{"no UTF-8", "a = \"\xff\"", "c.toml:1:6: this is no TOML: "},
		{"a key twice", "a = 1\n  a = 2\n", "c.toml:2:3: a: a stands here for the second time\nhint: it is in line 1 already"},
		{"a key of a table twice", "[x.y]\na = 1\na = 2\n", "c.toml:3:1: x.y.a: a stands here"},
		{"a table twice", "[x]\n[y]\n[x]\n", "c.toml:3:2: x: x stands here for the second time\nhint: it is in line 1"},
		{"a table out of a list", "[[x]]\n[x]\n", "c.toml:2:2: x: "},
		{"a list out of a table", "[x]\n[[x]]\n", "c.toml:2:3: x: "},
		{"a list out of a list", "x = []\n[[x]]\n", "c.toml:2:3: x: "},
		{"a table in a number", "x = 1\n[x.y]\n", "c.toml:2:2: x.y: "},
		{"into an inline table", "x = {}\n[x.y]\n", "c.toml:2:2: x.y: "},
		{"dots into an inline table", "x = {}\nx.y = 1\n", "c.toml:2:1: x.y: "},
		{"dots into a header's", "[x.y]\n[x]\ny.z = 1\n", "c.toml:3:1: x.y.z: "},
		{"a header of a dotted table", "x.y = 1\n[x]\n", "c.toml:2:2: x: "},
		{"twice in braces", "x = {a = 1, b.c = 2, b.c = 3}\n", "c.toml:1:24: x.b.c: "},
	}
	for _, tt := range tests {
		_, err := Parse("c.toml", []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%s: got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// What is defined twice hides no other mistake, and what was read before the end of the TOML is there.
func TestParseGoesOn(t *testing.T) {
	f, err := Parse("c.toml", []byte("a = 1\na = 2\n[t]\nb = 1\n[t]\nc = 1\nc = 2\n[u]\nd = 1\n!"))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 4 {
		t.Fatalf("got %v", err)
	}
	for i, line := range []int{2, 5, 7, 10} {
		var mistake *Error
		if !errors.As(joined.Unwrap()[i], &mistake) || mistake.Line != line {
			t.Errorf("mistake %d: %v", i, mistake)
		}
	}
	if f.Root.Get("u").Value.Table.Get("d") == nil || f.Root.Get("t").Value.Table.Get("b") == nil {
		t.Error("what was read is not there")
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-5": -5, "+7": 7, "1_000": 1000, "0xff": 255, "0o17": 15, "0b11": 3, "9223372036854775807": 1<<63 - 1} {
		if n, ok := (Value{Text: text}).Integer(); n != want || !ok {
			t.Errorf("%s: %d, %v", text, n, ok)
		}
	}
	if _, ok := (Value{Text: "9223372036854775808"}).Integer(); ok {
		t.Error("a number of 65 bits was read")
	}
}

// What Key and Quote write is read back to the same text.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a", "a b", `a"b`, `a'b"\c`, "\x1b\n\u202e\x7f", "ä\U0001F600\U000E0001", `C:\x`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ToValidUTF8(text, "\ufffd")
		file, err := Parse("c", []byte("["+Key(text, "x")+"]\ny = "+Quote(text)))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		root := file.Root.Entries[0]
		got := root.Value.Table.Get("x").Value.Table.Get("y").Value.Text
		if len([]rune(root.Key)) != len([]rune(text)) || (want == text && (root.Key != text || got != text)) {
			t.Errorf("%q became %q and %q", text, root.Key, got)
		}
	})
}

// Whatever the bytes are: no panic, positions inside the file, and the same verdict as the decoder's.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	for _, text := range []string{
		"x.y=1\n[x.z]\n[x]", "[[a]]\n[a.b]\n[[a]]\n[a.b]", "a={b=[{c=1},{c=2}]}", "[a.b]\n[a]\nb.c=1", "[a]\n[[a.b]]\n[a.b.c]", "a=[[[[]]]]", "\"\"=1", "[a]\nb.c=1\n[a.b.d]",
		"a=0_1", "a=010", "a=1979-05-27T07:32:00Z", "a=\"\"\"\n\\\n x\"\"\"", "\r\n", "a=nan", "\xef\xbb\xbfa=1", "a='''\n'''",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		file, err := Parse("c", data)
		var values map[string]any
		theirs := toml.Unmarshal(file.data, &values)
		if (err == nil) != (theirs == nil) {
			t.Fatalf("%q: %v, and the decoder says %v", data, err, theirs)
		}
		if mistake := (*Error)(nil); errors.As(err, &mistake) && (mistake.Line < 1 || mistake.Column < 1) {
			t.Errorf("%q: %v", data, err)
		}
		if err == nil {
			same(t, file.Root, values)
		}
	})
}

// same compares the structure with what the decoder made.
func same(t *testing.T, table *Table, values map[string]any) {
	t.Helper()
	if len(table.Entries) != len(values) {
		t.Fatalf("%d keys, not %d", len(table.Entries), len(values))
	}
	for _, e := range table.Entries {
		switch theirs := values[e.Key].(type) {
		case map[string]any:
			same(t, e.Value.Table, theirs)
		case []any:
			if len(e.Value.Items) != len(theirs) {
				t.Fatalf("%s: %d items, not %d", e.Key, len(e.Value.Items), len(theirs))
			}
		case string:
			if e.Value.Text != theirs || e.Value.Kind != String {
				t.Fatalf("%s: %q, not %q", e.Key, e.Value.Text, theirs)
			}
		case int64:
			if n, ok := e.Value.Integer(); n != theirs || !ok {
				t.Fatalf("%s: %q, not %d", e.Key, e.Value.Text, theirs)
			}
		case nil:
			t.Fatalf("%s is not there", e.Key)
		}
	}
}
