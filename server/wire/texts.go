package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/10f93571/retry/server/problem"
)

// readText reads a short text that people see.
func readText(o *problem.Object, name string, most int) string {
	value := o.String(name, "")
	if err := checkText(value, most); err != nil {
		o.Fail(name, err)
	}
	return value
}

func checkText(value string, most int) error {
	switch {
	case len(value) > most:
		return fmt.Errorf("it has %d bytes, more than %d", len(value), most)
	case strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("it holds a character that cannot be printed")
	}
	return nil
}

func readTags(o *problem.Object) []string {
	tags := o.Strings("tags", maxTags)
	for i, tag := range tags {
		err := checkText(tag, maxTag)
		if tag == "" {
			err = fmt.Errorf("the tag is empty")
		}
		if slices.Contains(tags[:i], tag) {
			err = fmt.Errorf("the tag is there twice")
		}
		if err != nil {
			o.FailAt(fmt.Sprintf("%s/%d", o.Pointer("tags"), i), err)
		}
	}
	return tags
}
