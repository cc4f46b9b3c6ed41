package man

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/cli/syntax"
)

// Reference returns docs/reference.md: all commands with their flags.
func Reference(commands []*syntax.Parser) string {
	var b strings.Builder
	b.WriteString("# Commands and flags\n\nEach command with all of its flags, as `--help-all` and `--help` print them. This page is made by `make man`.\n\n")
	for _, c := range commands {
		title := "retry " + c.Name()
		fmt.Fprintf(&b, "- [%s](#%s)\n", title, strings.ReplaceAll(title, " ", "-"))
	}
	for _, c := range commands {
		fmt.Fprintf(&b, "\n## retry %s\n\n", c.Name())
		about, rest, _ := strings.Cut(strings.TrimSpace(c.Usage()), "\n\n")
		b.WriteString(about + "\n\n```text\n" + rest + "\n```\n")
		var rows [][2]string
		for _, argument := range c.Arguments() {
			rows = append(rows, [2]string{"`" + argument[0] + "`", argument[1]})
		}
		writeTable(&b, "", rows)
		for _, group := range c.Groups() {
			rows = nil
			for _, f := range group.Flags {
				term := "`--" + f.Name
				if !f.IsBool() {
					term += "=" + f.FormatPlaceHolder()
				}
				if term += "`"; f.Short != 0 {
					term = fmt.Sprintf("`-%c`, %s", f.Short, term)
				}
				rows = append(rows, [2]string{term, c.HelpOf(f)})
			}
			writeTable(&b, group.Title, rows)
		}
	}
	return b.String()
}

// writeTable writes rows of a term and its explanation; the terms are written in Markdown already.
func writeTable(b *strings.Builder, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	if title != "" && title != "Flags" {
		b.WriteString("\n**" + title + "**\n")
	}
	b.WriteString("\n| | |\n|---|---|\n")
	inCell := strings.NewReplacer("|", `\|`)
	inText := strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", `\<`)
	for _, row := range rows {
		fmt.Fprintf(b, "| %s | %s |\n", inCell.Replace(row[0]), inText.Replace(row[1]))
	}
}
