package text

import (
	"fmt"
	"strings"
)

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

// distance is the Levenshtein distance of two words. One that begins the other (exponential, exp) has the distance 1.
func distance(a, b string) int {
	if a != b && min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
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
