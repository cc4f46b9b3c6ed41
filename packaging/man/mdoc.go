// Package man makes the pages of the manual and docs/reference.md, from what the commands say of themselves and from the
// pages in docs. Tests alone use it: go test ./packaging/man -update writes the pages anew.
package man

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// mdoc writes a page in the language of mdoc(7).
type mdoc struct {
	strings.Builder
	open bool // text stands above, so that a paragraph begins with .Pp
}

// macro writes a line that is not text.
func (m *mdoc) macro(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// section begins a section, section with a dot before its title a part of one.
func (m *mdoc) section(title string) {
	m.macro(".Sh %s", strings.ToUpper(title))
	m.open = false
}

func (m *mdoc) part(title string) {
	m.macro(".Ss %s", escaped(title))
	m.open = false
}

// paragraph writes text in which font changes are written already.
func (m *mdoc) paragraph(text string) {
	if m.open {
		m.macro(".Pp")
	}
	m.lines(text)
	m.open = true
}

// sentenceEnd is where mdoc wants a new line.
var sentenceEnd = regexp.MustCompile(`([.!?](?:\\f[RBI]|[)"'])*) +`)

// widestLine is the length of a line of the source that mandoc finds too long.
const widestLine = 78

// lines writes text, each sentence on lines of its own.
func (m *mdoc) lines(text string) {
	text = sentenceEnd.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1\n")
	for sentence := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(sentence) {
			if line != "" && width(line)+1+width(word) > widestLine {
				m.macro("%s", guarded(line))
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		if line != "" {
			m.macro("%s", guarded(line))
		}
	}
}

// width is the length of a text as mandoc counts it: it writes out each character beyond ASCII, as \[u2026].
func width(text string) (n int) {
	for _, r := range text {
		n++
		if r >= utf8.RuneSelf {
			n += len(`[u2026]`)
		}
	}
	return n
}

// guarded keeps a line of text from being taken for a macro.
func guarded(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// escaped keeps text as it is.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\e`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`, "--", `\-\-`).Replace(text)
}

// code is escaped text that stands for itself: a dash is the one that is typed.
func code(text string) string {
	return strings.NewReplacer(`\-`, `\-`, "-", `\-`, "'", `\(aq`).Replace(escaped(text))
}

// display writes lines that stay as they are.
func (m *mdoc) display(text string) {
	m.macro(".Bd -literal -offset indent")
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if line == "" {
			m.macro(`\&`)
			continue
		}
		m.macro("%s", guarded(strings.TrimRight(code(line), " ")))
	}
	m.macro(".Ed")
	m.open = true
}

// terms writes a list of terms with their explanations. Fonts in both are written already.
func (m *mdoc) terms(rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	m.macro(".Bl -tag -width Ds")
	for _, row := range rows {
		m.macro(".It %s", strings.ReplaceAll(row[0], `"`, `\(dq`))
		m.lines(row[1])
	}
	m.macro(".El")
	m.open = true
}

// markdown writes a part of a page of docs: of its sections those with the titles, or all where none is given.
func (m *mdoc) markdown(source []byte, titles ...string) {
	document := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	wanted := len(titles) == 0
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		heading, isHeading := node.(*ast.Heading)
		if isHeading && len(titles) > 0 {
			title := plain(node, source)
			wanted = false
			for _, t := range titles {
				wanted = wanted || t == title
			}
		}
		switch {
		case !wanted:
		case isHeading && heading.Level > 1:
			m.part(plain(node, source))
		case !isHeading:
			m.block(node, source)
		}
	}
}

func (m *mdoc) block(node ast.Node, source []byte) {
	switch node := node.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		m.paragraph(inline(node, source))
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		m.display(string(node.Lines().Value(source)))
	case *ast.List:
		kind := "-bullet"
		if node.IsOrdered() {
			kind = "-enum"
		}
		m.macro(".Bl %s", kind)
		for item := node.FirstChild(); item != nil; item = item.NextSibling() {
			m.macro(".It")
			m.open = false
			for child := item.FirstChild(); child != nil; child = child.NextSibling() {
				m.block(child, source)
			}
		}
		m.macro(".El")
		m.open = true
	case *extast.Table:
		m.table(node, source)
	}
}

// table writes the first cell of each row as a term, and the others as its explanation.
func (m *mdoc) table(table *extast.Table, source []byte) {
	var rows [][2]string
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		if _, isHeader := row.(*extast.TableHeader); isHeader {
			continue
		}
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if content := inline(cell, source); content != "" {
				cells = append(cells, content)
			}
		}
		if len(cells) > 0 {
			rows = append(rows, [2]string{cells[0], strings.Join(cells[1:], ": ")})
		}
	}
	m.terms(rows)
}

// inline returns the text of a node with its fonts.
func inline(node ast.Node, source []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			b.WriteString(escaped(string(child.Segment.Value(source))))
			if child.SoftLineBreak() || child.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.CodeSpan:
			b.WriteString(`\fB` + code(strings.ReplaceAll(plain(child, source), `\|`, "|")) + `\fR`)
		case *ast.Emphasis:
			b.WriteString(map[int]string{1: `\fI`, 2: `\fB`}[child.Level] + inline(child, source) + `\fR`)
		default: // of a link, its text
			b.WriteString(inline(child, source))
		}
	}
	return b.String()
}

// plain returns the text of a node without fonts or escapes.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
			continue
		}
		b.WriteString(plain(child, source))
	}
	return b.String()
}
