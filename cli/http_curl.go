package cli

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/cli/flags"
)

// checkCurl finds the first flag that retry http does not have, where it is one of curl's or has one letter: the nearest of our own
// letters would be no help.
func (s flagSet) checkCurl(words []string) error {
	for len(words) > 0 && words[0] != "--" {
		word := words[0]
		words = words[1:]
		if !isFlag(word) {
			continue
		}
		valued, err := s.checkCurlFlag(word)
		if err != nil {
			return err
		}
		if valued && len(words) > 0 {
			words = words[1:]
		}
	}
	return nil
}

// checkCurlFlag looks at a word of flags, and reports whether the next word is a value.
func (s flagSet) checkCurlFlag(word string) (valued bool, err error) {
	if long, isLong := strings.CutPrefix(word, "--"); isLong {
		name, _, attached := strings.Cut(long, "=")
		if s.named[name] != nil {
			return !attached && !s.named[name].IsBool(), nil
		}
		return false, unknownCurl("--"+name, name, false)
	}
	shorts := word[1:]
	for i, letter := range shorts {
		flag := s.named[string(letter)]
		switch {
		case flag == nil && s.named[shorts] != nil: // a long one with a dash too few
			return false, nil
		case flag == nil:
			return false, unknownCurl("-"+string(letter), string(letter), len(shorts) == len(string(letter)))
		case !flag.IsBool():
			return i+1 == len(shorts), nil
		}
	}
	return false, nil
}

// unknownCurl is nil where kong says it better, unless it has to be said.
func unknownCurl(written, name string, always bool) error {
	if hint := flags.CurlHint(name); hint != "" {
		return fmt.Errorf("unknown flag %s\nhint: %s", written, hint)
	}
	if always {
		return fmt.Errorf("unknown flag %s\nhint: retry http --help lists the flags; they are those of curl that make sense here", written)
	}
	return nil
}
