package cli

import (
	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/flags"
)

// describe gives the flags that kong has made without them their texts.
func describe(subcommand string, described []*kong.Flag) {
	groups := map[string]*kong.Group{}
	for _, f := range described {
		text := flags.TextOf(subcommand, f.Name)
		if f.Help != "" || text == nil {
			continue
		}
		f.Help, f.PlaceHolder = text.Help, text.Placeholder
		if text.Group == "" {
			continue
		}
		if groups[text.Group] == nil {
			groups[text.Group] = &kong.Group{Key: text.Group, Title: text.Group}
		}
		f.Group = groups[text.Group]
	}
}
