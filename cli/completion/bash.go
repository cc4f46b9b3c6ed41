package completion

import "strings"

// Unquoted is what bash makes of a word that is being typed, without expanding anything in it. open is the quote that
// is not closed yet; 0 for none.
func Unquoted(word string) (plain string, open byte) {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		c := word[i]
		switch {
		case c == '\\' && open != '\'' && i+1 < len(word):
			i++
			if open == '"' && !strings.ContainsRune("$`\"\\", rune(word[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(word[i])
		case open == 0 && (c == '\'' || c == '"'):
			open = c
		case c == open && open != 0:
			open = 0
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), open
}

// inBash returns an answer for bash, which replaces the end of a word by what it is told, and quotes nothing. word is
// the word at the cursor as it was typed; bash keeps so many bytes of it, since it cuts words at = and : too.
func (a Answer) inBash(word string, keep int) Answer {
	plain, open := Unquoted(word)
	keep = min(max(keep, 0), len(word))
	kept, _ := Unquoted(word[:keep])
	if kept != word[:keep] || !strings.HasPrefix(plain, kept) || a.Offset > len(plain) {
		a.Items = nil // a quote stands before the part that bash replaces
		return a
	}
	var items []Item
	for _, item := range a.Items {
		whole := plain[:a.Offset] + item.Value
		rest, found := strings.CutPrefix(whole, kept)
		if !found || !strings.HasPrefix(whole, plain) {
			continue
		}
		if item.Value = quoted(rest, open); item.Value != "" {
			items = append(items, item)
		}
	}
	a.Items = items
	return a
}

// plainCharacters need no quoting anywhere in a word.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-^"

// quoted writes a text so that bash reads it as it is, inside of a quote that was opened or outside of any. It returns
// nothing for what cannot be written there.
func quoted(text string, open byte) string {
	if open == '\'' {
		if strings.Contains(text, "'") {
			return ""
		}
		return text
	}
	var b strings.Builder
	for _, r := range text {
		special := !strings.ContainsRune(plainCharacters, r) && r < 0x80
		if open == '"' {
			if r == '!' { // it would be a line of the history, which no quoting prevents here
				return ""
			}
			special = strings.ContainsRune("$`\"\\", r)
		}
		if special {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
