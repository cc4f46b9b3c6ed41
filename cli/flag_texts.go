package cli

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

//go:embed flags.txt
var flagsPage string

// flagText is what people read about a flag.
type flagText struct {
	group, placeholder, help string
	example                  string // a value, for the schema of the config file
}

// flagTexts are those of flags.txt by name; one for a single subcommand has that and a space before its name.
var flagTexts = sync.OnceValue(func() map[string]*flagText {
	texts := map[string]*flagText{}
	prefix, group := "", ""
	var text *flagText
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
			text = &flagText{group: group, placeholder: placeholder}
			texts[prefix+name] = text
		case isText && isExample:
			text.example = example
		case isText:
			text.help = indented
		}
	}
	return texts
})

// textOf returns what is said of a flag of a subcommand; nil where its own tags say it.
func textOf(subcommand, flag string) *flagText {
	texts := flagTexts()
	if text := texts[subcommand+" "+flag]; text != nil {
		return text
	}
	return texts[flag]
}

// describe gives the flags that kong has made without them their texts.
func describe(subcommand string, flags []*kong.Flag) {
	groups := map[string]*kong.Group{}
	for _, f := range flags {
		text := textOf(subcommand, f.Name)
		if f.Help != "" || text == nil {
			continue
		}
		f.Help, f.PlaceHolder = text.help, text.placeholder
		if text.group == "" {
			continue
		}
		if groups[text.group] == nil {
			groups[text.group] = &kong.Group{Key: text.group, Title: text.group}
		}
		f.Group = groups[text.group]
	}
}
