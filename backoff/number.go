package backoff

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const digitsAndDot = "0123456789."

var (
	errNotNumber = errors.New("is not a plain decimal number")
	errTooLarge  = errors.New("is too large")
)

// readNumber reads a plain decimal. strconv alone would let inf, nan, 0x1p4 and 1e9 through.
func readNumber(s string) (float64, error) {
	if strings.Trim(s, digitsAndDot) != "" {
		return 0, errNotNumber
	}
	x, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errTooLarge
	}
	if err != nil {
		return 0, errNotNumber
	}
	return x, nil
}

// formatNumber is the shortest decimal that readNumber reads back to x.
func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// parseNumber reads one number of a spec; the error names the part.
func parseNumber(part, text string) (float64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, fmt.Errorf("the %s is missing", part)
	}
	x, err := readNumber(text)
	if err != nil {
		return 0, fmt.Errorf("the %s %q %w", part, text, err)
	}
	return x, nil
}

// parsePart reads one duration of a spec; the error names the part.
func parsePart(part, text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, fmt.Errorf("the %s is missing", part)
	}
	d, err := readDuration(text)
	if err != nil {
		return 0, fmt.Errorf("the %s %q %w", part, text, err)
	}
	return d, nil
}
