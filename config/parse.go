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
		const hint = "\nhint: save it as UTF-8; editors call the other kind UTF-16 or Unicode"
		return b.file, b.file.Errorf(max(bytes.IndexByte(data, 0), 0), "", "the file is no text in UTF-8"+hint)
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
