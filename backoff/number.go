package backoff

import (
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// parseNumber reads one number of a spec; the error names the part.
func parseNumber(part, txt string) (float64, error) {
	txt = strings.TrimSpace(txt)
	if txt == "" {
		return 0, fmt.Errorf("the %s is missing", part)
	}
	x, err := text.ParseNumber(txt)
	if err != nil {
		return 0, fmt.Errorf("the %s %q %w", part, txt, err)
	}
	return x, nil
}

// parsePart reads one duration of a spec; the error names the part.
func parsePart(part, txt string) (time.Duration, error) {
	txt = strings.TrimSpace(txt)
	if txt == "" {
		return 0, fmt.Errorf("the %s is missing", part)
	}
	d, err := text.ReadDuration(txt)
	if err != nil {
		return 0, fmt.Errorf("the %s %q %w", part, txt, err)
	}
	return d, nil
}
