// Package text reads and writes text for people: durations, numbers, the known word nearest to a mistyped one, and
// escapes for characters that a terminal must not interpret.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes text safe for a terminal: control characters, invisible and bidirectional format characters and invalid
// UTF-8 are shown as \x1b, \u202e and the like.
func Escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"): // invalid UTF-8
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r): // no control or format character, such as U+202E, and no space but the usual one
			b.WriteRune(r)
		case r < ' ' && !strings.ContainsRune("\n\t\r", r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Shorten cuts a text after the given number of characters, and adds an ellipsis, if it is longer.
func Shorten(text string, most int) string {
	if end := Offset(text, most); end < len(text) {
		return text[:end] + "…"
	}
	return text
}

// Offset returns the offset in bytes at which the given number of characters ends.
func Offset(text string, characters int) int {
	for i := range text {
		if characters--; characters < 0 {
			return i
		}
	}
	return len(text)
}

// EscapeJSON writes unsafe characters in JSON as \u009b and the like. JSON has such characters only in strings.
func EscapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// longestTypo is the length in bytes up to which a word is compared. It bounds the time that a comparison takes.
const longestTypo = 64

// Nearest returns the known word that a person most likely meant by a mistyped one, or "" where none is near. Upper and
// lower case, dash and underscore count as the same.
func Nearest(word string, known []string) (found string) {
	if len(word) > longestTypo {
		return ""
	}
	word = strings.ToLower(strings.ReplaceAll(word, "_", "-"))
	least := min(max(len(word)/3, 1)+1, len(word)) // at least one letter has to be right
	for _, k := range known {
		if d := distance(word, strings.ToLower(k)); d < least {
			least, found = d, k
		}
	}
	return found
}

// distance counts the letters to change, add, leave out or swap with the next (quite, quiet). Where one word begins the
// other (exponential, exp) it is 1.
func distance(a, b string) int {
	if a != b && min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	var before, earlier []int // the two rows above
	for i := range len(a) {
		before, earlier = row, before
		row = make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := before[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, before[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], earlier[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// WithHint adds a hint to an error that has none.
func WithHint(err error, hint string) error {
	if strings.Contains(err.Error(), "\nhint: ") {
		return err
	}
	return fmt.Errorf("%w\nhint: %s", err, hint)
}
