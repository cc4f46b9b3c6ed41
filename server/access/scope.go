package access

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// scopeNames lists the names of the scopes, from Read on.
const scopeNames = "read,write,admin"

func (s Scope) String() string {
	if names := ScopeNames(); s > None && int(s) <= len(names) {
		return names[s-1]
	}
	return "none"
}

// ScopeNames are the words that ParseScope reads, the lowest first.
func ScopeNames() []string { return strings.Split(scopeNames, ",") }

// ParseScope reads a scope, or several with commas between: then it is the highest.
func ParseScope(list string) (Scope, error) {
	highest := None
	names := strings.Split(scopeNames, ",")
	for word := range strings.SplitSeq(list, ",") {
		scope := None
		for i, name := range names {
			if word == name {
				scope = Scope(i + 1)
			}
		}
		if scope == None {
			hint := "give read, write or admin, or several with commas between"
			if near := text.Nearest(word, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return None, fmt.Errorf("invalid scope %q\nhint: %s", word, hint)
		}
		highest = max(highest, scope)
	}
	return highest, nil
}
