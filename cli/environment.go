package cli

import (
	"strings"
)

// nameOf is the NAME of NAME=value.
func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}
