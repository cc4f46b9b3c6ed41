package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// BuiltinNames are the policies that every retry has.
func BuiltinNames() []string {
	names := []string{task.DefaultPolicyName}
	for _, p := range backoff.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Unknown is the error for a name among those that are known.
func Unknown(name string, known []string) error {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	hint := "the policies are " + strings.Join(known, ", ")
	if found := text.Nearest(name, known); found != "" {
		hint = fmt.Sprintf("did you mean %s? %s", found, hint)
	}
	return fmt.Errorf("unknown policy %q\nhint: %s", name, hint)
}

// hintFor names the nearest of the known words, or says what is known.
func hintFor(word string, known []string, near, otherwise string) string {
	if found := text.Nearest(word, known); found != "" {
		return fmt.Sprintf(near, found)
	}
	return otherwise
}

// maxPolicyName is the length of a name in bytes.
const maxPolicyName = 200

// CheckName refuses a name that could not be typed, shown or be a part of a path.
func CheckName(name string) error {
	const hint = "\nhint: a name has letters, digits, spaces and signs but /, and 200 bytes at the most"
	switch {
	case name == "":
		return errors.New("the policy's name is empty" + hint)
	case len(name) > maxPolicyName:
		return fmt.Errorf("the policy's name has %d bytes%s", len(name), hint)
	case !utf8.ValidString(name):
		return errors.New("the policy's name is no UTF-8" + hint)
	case strings.Contains(name, "/"):
		return errors.New("the policy's name has a / in it" + hint)
	case strings.TrimSpace(name) != name:
		return errors.New("the policy's name begins or ends with a space" + hint)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the policy's name has a character that cannot be shown" + hint)
	}
	return nil
}

// Neither is the error for a word that is no policy; what it is not as a curve tells more unless a policy's name is near.
func (c *Choice) Neither(notCurve error) error {
	unknown := Unknown(c.Name, c.known)
	if c.Name == "" {
		return errors.New("it is empty\nhint: write a backoff like exp:1s..1m, or the name of a policy")
	}
	if text.Nearest(c.Name, c.known) != "" {
		return unknown
	}
	_, hint, _ := strings.Cut(unknown.Error(), "\nhint: ")
	return fmt.Errorf("%w\nhint: %s", notCurve, hint)
}
