package flags

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed flags.txt
var flagsPage string

// FlagText is what people read about a flag.
type FlagText struct {
	Group, Placeholder, Help string
	Example                  string // a value, for the schema of the config file
}

// FlagTexts are those of flags.txt by name; one for a single subcommand has that and a space before its name.
var FlagTexts = sync.OnceValue(func() map[string]*FlagText {
	texts := map[string]*FlagText{}
	prefix, group := "", ""
	var text *FlagText
	for line := range strings.Lines(flagsPage) {
		line = strings.TrimRight(line, "\n")
		title, isGroup := strings.CutPrefix(line, "[")
		flag, isFlag := strings.CutPrefix(line, "--")
		indented, isText := strings.CutPrefix(line, "    ")
		switch example, isExample := strings.CutPrefix(indented, "e.g. "); {
		case isGroup:
			prefix, group = "", strings.TrimSuffix(title, "]")
			if command, rest, both := strings.Cut(group, " "); both {
				prefix, group = command+" ", rest
			}
		case isFlag:
			name, placeholder, _ := strings.Cut(flag, " ")
			text = &FlagText{Group: group, Placeholder: placeholder}
			texts[prefix+name] = text
		case isText && isExample:
			text.Example = example
		case isText:
			text.Help = indented
		}
	}
	return texts
})

// TextOf returns what is said of a flag of a subcommand; nil where its own tags say it.
func TextOf(subcommand, flag string) *FlagText {
	texts := FlagTexts()
	if text := texts[subcommand+" "+flag]; text != nil {
		return text
	}
	return texts[flag]
}
