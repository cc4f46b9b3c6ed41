package text

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const digitsAndDot = "0123456789."

var (
	errNotNumber = errors.New("is not a plain decimal number")
	errTooLarge  = errors.New("is too large")
)

// ParseNumber reads a plain decimal. strconv alone would let inf, nan, 0x1p4 and 1e9 through.
func ParseNumber(s string) (float64, error) {
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

// FormatNumber is the shortest decimal that ParseNumber reads back to x.
func FormatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// Count writes a number with what it counts: "1 task", "3 tasks", "2 policies", "2 successes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Size writes a number of bytes for people: "512 B", "1.5 KiB".
func Size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for ; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%s %ciB", TrimZero(fmt.Sprintf("%.1f", value)), units[unit])
}
