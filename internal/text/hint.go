package text

import (
	"fmt"
	"strings"
)

// WithHint adds a hint to an error that has none.
func WithHint(err error, hint string) error {
	if strings.Contains(err.Error(), "\nhint: ") {
		return err
	}
	return fmt.Errorf("%w\nhint: %s", err, hint)
}
