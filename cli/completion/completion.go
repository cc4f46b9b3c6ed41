// Package completion is how retry speaks with the completion of a shell. A small script for each shell asks a hidden
// command of retry what may follow the words before the cursor, so that retry alone knows its flags, values and tasks.
package completion

import (
	_ "embed" // the scripts
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The scripts, one a shell.
var (
	//go:embed retry.bash
	bashScript string
	//go:embed retry.zsh
	zshScript string
	//go:embed retry.fish
	fishScript string
)

// Shells are those that there is a script for.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Script returns the script for a shell; empty where there is none.
func Script(shell string) string {
	return map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
}

// Kind is what may stand at the cursor.
type Kind string

// The kinds, as the scripts know them.
const (
	Values      Kind = "values"  // one of the items
	Files       Kind = "files"   // a file, or one of the items
	Directories Kind = "dirs"    // a directory
	Command     Kind = "command" // a part of a command that has a completion of its own, or one of the items
)

// Answer is what may stand at the cursor.
type Answer struct {
	Kind   Kind
	Offset int // bytes of the word at the cursor that stay: it is 5 for a value after --ci=
	First  int // of a Command: which word begins it, 0 for the one after retry
	Items  []Item
}

// Item is one text to choose.
type Item struct {
	Value string
	About string // what it is, for people
}

// maxAbout is how much of an explanation is shown beside an item, in characters.
const maxAbout = 70

// write tells an answer to a script: a line with the kind and two numbers, then a line for each item, with a tab before
// the explanation. What a line cannot hold is left out.
func (a Answer) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %d\n", a.Kind, a.Offset, a.First)
	for _, item := range a.Items {
		if !isPrintable(item.Value) {
			continue
		}
		b.WriteString(item.Value)
		if about := shortened(item.About); about != "" {
			b.WriteString("\t" + about)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// isPrintable reports whether a shell can show a text and put it on the command line.
func isPrintable(text string) bool {
	notPrintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, notPrintable)
}

// shortened returns the first sentence of an explanation, without what a terminal would obey.
func shortened(about string) string {
	about, _, _ = strings.Cut(about, ". ")
	about = strings.TrimSuffix(about, ".")
	about = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(about, "�"))
	if runes := []rune(about); len(runes) > maxAbout {
		about = string(runes[:maxAbout-1]) + "…"
	}
	return about
}

// Asked is what a script asks with the words after the hidden command: bash KEPT -- WORD…, or zsh -- WORD…, without the
// word retry. The last word is the one at the cursor. KEPT is how much of it bash keeps.
type Asked struct {
	Words []string // as retry would get them

	raw  string // the last word as it was typed
	bash bool
	kept int
}

// ErrAsked says that no script has asked.
var ErrAsked = errors.New("this is for the scripts of retry completion\nhint: retry completion bash")

// Ask reads the words of a script.
func Ask(args []string) (Asked, error) {
	at := slices.Index(args, "--")
	if at < 1 || at == len(args)-1 || Script(args[0]) == "" {
		return Asked{}, ErrAsked
	}
	a := Asked{Words: slices.Clone(args[at+1:]), raw: args[len(args)-1], bash: args[0] == "bash"}
	if !a.bash {
		return a, nil
	}
	var err error
	if a.kept, err = strconv.Atoi(args[1]); err != nil {
		return a, ErrAsked
	}
	for i, word := range a.Words {
		a.Words[i], _ = Unquoted(word)
	}
	return a, nil
}

// Reply writes an answer for the script that has asked.
func (q Asked) Reply(w io.Writer, a Answer) error {
	if q.bash {
		a = a.inBash(q.raw, q.kept)
	}
	return a.write(w)
}

// With returns the items whose value begins with a text.
func With(prefix string, items []Item) (found []Item) {
	for _, item := range items {
		if strings.HasPrefix(item.Value, prefix) {
			found = append(found, item)
		}
	}
	return found
}
