package syntax

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/completion"
)

// Spot is the place of the cursor: in the value of a flag, or in a word after a command's name.
type Spot struct {
	Name        string // of the flag, or of the word
	IsFlag      bool
	Placeholder string   // what a value looks like, such as FILE or text|json
	Choices     []string // the only values; nil where there are others
	Typed       string   // of the value, up to the cursor
	Offset      int      // bytes of the shell's word before that
}

// spot is the place in a flag's value, which is the end of a shell's word.
func (p *Parser) spot(f *kong.Flag, word, value string) Spot {
	s := Spot{Name: f.Name, IsFlag: true, Placeholder: f.PlaceHolder, Typed: value, Offset: len(word) - len(value)}
	switch {
	case f.Enum != "":
		s.Choices = f.EnumSlice()
	case f.IsBool() && f.PlaceHolder == "":
		s.Choices = []string{"true", "false"}
	}
	// Of several values with commas between, the last one is being typed.
	if last := strings.LastIndex(value, ","); f.IsSlice() && f.Tag.Sep == ',' && last >= 0 {
		s.Typed, s.Offset = value[last+1:], s.Offset+last+1
	}
	return s
}

// FlagAt completes a word that begins with a dash: a flag, or the value that is attached to it. Then ok is true.
func (p *Parser) FlagAt(word string) (flags []completion.Item, value Spot, ok bool) {
	if name, isLong := strings.CutPrefix(word, "--"); isLong {
		name, value, attached := strings.Cut(name, "=")
		switch f := p.known[name]; {
		case !attached:
			return p.flagItems(word), Spot{}, false
		case f != nil:
			return nil, p.spot(f, word, value), true
		}
		return nil, Spot{}, false
	}
	for i, r := range word[1:] {
		f, end := p.known[string(r)], 1+i+len(string(r))
		switch {
		case f == nil:
			return nil, Spot{}, false
		case !f.IsBool() && end < len(word):
			return nil, p.spot(f, word, strings.TrimPrefix(word[end:], "=")), true
		}
	}
	return p.flagItems(word), Spot{}, false
}

// flagItems are the flags, with their letters below a single dash; a word of letters is one item, as it is.
func (p *Parser) flagItems(word string) (items []completion.Item) {
	if len(word) > 1 && !strings.HasPrefix(word, "--") {
		return []completion.Item{{Value: word, About: p.HelpOf(p.known[word[len(word)-1:]])}}
	}
	for _, group := range p.Groups() {
		for _, f := range group.Flags {
			about := p.HelpOf(f)
			if word == "-" && f.Short != 0 {
				items = append(items, completion.Item{Value: "-" + string(f.Short), About: about})
			}
			items = append(items, completion.Item{Value: "--" + f.Name, About: about})
		}
	}
	return items
}

// ValueAt reads the flag that the words begin with, of which the last one is being typed: it is the value of the flag
// where ok is true. Otherwise taken is the flag as --name or --name=value, and rest what follows it. A flag that is wrong
// is passed over.
func (p *Parser) ValueAt(words []string) (taken, rest []string, value Spot, ok bool) {
	taken, rest, err := p.Take(words)
	if err != nil || len(taken) == 0 {
		return nil, words[1:], Spot{}, false
	}
	if len(rest) > 0 {
		return taken, rest, Spot{}, false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(taken[len(taken)-1], "--"), "=")
	last := words[len(words)-1]
	return taken, nil, p.spot(p.known[name], last, last), true
}

// WordAt is the place of the word after the command's name that has this index; ok is false where none belongs.
func (p *Parser) WordAt(index int, word string) (s Spot, ok bool) {
	all := p.Model.Positional
	if len(all) == 0 || index >= len(all) && !all[len(all)-1].IsCumulative() {
		return Spot{}, false
	}
	argument := all[min(index, len(all)-1)]
	return Spot{Name: argument.Name, Typed: word}, true
}
