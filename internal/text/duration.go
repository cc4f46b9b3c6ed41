package text

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var (
	errEmpty       = errors.New("is empty")
	errNegative    = errors.New("is negative")
	errNotDuration = errors.New("is not a duration")
	errTooLong     = errors.New("is too long: 292 years is the limit")
)

// ParseDuration reads Go's syntax, with d and w ("1w2d3h", "1.5d") and longer words for the units ("5min", "2 hours").
// A last number without a unit counts the next smaller one ("1m30"); alone it counts seconds ("30", "0.5"). Negative,
// empty, malformed and too long texts are errors.
func ParseDuration(s string) (time.Duration, error) {
	d, err := ReadDuration(s)
	if err != nil {
		return 0, fmt.Errorf("parse duration: %q %w\nhint: write 30s, 5min, 1h30m, 1.5d or a plain number of seconds", s, err)
	}
	return d, nil
}

// ReadDuration is ParseDuration for a caller whose own error quotes the text. Its errors are like "is negative".
func ReadDuration(s string) (time.Duration, error) {
	if strings.HasPrefix(s, "-") {
		return 0, errNegative
	}
	rest := strings.TrimPrefix(s, "+")
	if rest == "" {
		return 0, errEmpty
	}
	var total time.Duration
	for unit := ""; rest != ""; {
		var number, word string
		number, rest = cutBefore(rest, func(r rune) bool { return !isDigit(r) })
		word, rest = cutBefore(rest, isDigit)
		if word == "" {
			word = smallerUnit(unit)
		}
		unit = shortUnit(strings.Trim(word, " "))
		d, err := readSegment(number, unit)
		if err != nil {
			return 0, err
		}
		if d > math.MaxInt64-total {
			return 0, errTooLong
		}
		total += d
	}
	return total, nil
}

// smallerUnit is that of a number without one: "1h30" is 1h30m, and "30" alone 30s.
func smallerUnit(before string) string {
	return map[string]string{"": "s", "w": "d", "d": "h", "h": "m", "m": "s"}[before]
}

// shortUnit is Go's name of a unit that is written as a word; other words stay as they are.
func shortUnit(word string) string {
	switch word {
	case "sec", "secs", "second", "seconds":
		return "s"
	case "min", "mins", "minute", "minutes":
		return "m"
	case "hr", "hrs", "hour", "hours":
		return "h"
	case "day", "days":
		return "d"
	case "week", "weeks":
		return "w"
	}
	return word
}

// readSegment reads one number with its unit.
func readSegment(number, unit string) (time.Duration, error) {
	switch _, err := ParseNumber(number); {
	case errors.Is(err, errTooLarge):
		return 0, errTooLong
	case err != nil:
		return 0, errNotDuration
	}
	hours := time.Duration(1)
	switch unit {
	case "d":
		unit, hours = "h", 24
	case "w":
		unit, hours = "h", 7*24
	case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
	case "":
		return 0, fmt.Errorf("has no unit after %s", number)
	default:
		return 0, fmt.Errorf("has the unknown unit %q", unit)
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil || d > math.MaxInt64/hours {
		return 0, errTooLong
	}
	return d * hours, nil
}

// FormatDuration returns a short form that ParseDuration reads as the same value: "1m30s", "500ms", "20d10h", "0s".
func FormatDuration(d time.Duration) string {
	if d <= 0 {
		return d.String()
	}
	var text strings.Builder
	for _, u := range []struct {
		size time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if count := d / u.size; count > 0 {
			text.WriteString(strconv.FormatInt(int64(count), 10) + u.name)
			d -= count * u.size
		}
	}
	if d > 0 {
		text.WriteString(d.String())
	}
	return text.String()
}

// cutBefore splits s before the first rune that ends the part.
func cutBefore(s string, ends func(rune) bool) (part, rest string) {
	if i := strings.IndexFunc(s, ends); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func isDigit(r rune) bool { return strings.ContainsRune(digitsAndDot, r) }

// Duration writes a duration for people: with at most two units, and few digits.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-max(d, -math.MaxInt64))
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return fmt.Sprintf("%.2gms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return TrimZero(fmt.Sprintf("%.1f", d.Truncate(100*time.Millisecond).Seconds())) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return twoUnits(d, time.Hour, "h", time.Minute, "m")
	}
	return twoUnits(d, day, "d", time.Hour, "h")
}

// TrimZero removes a fraction of ".0".
func TrimZero(text string) string {
	if n := len(text) - 2; n > 0 && text[n:] == ".0" {
		return text[:n]
	}
	return text
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

const digitsAndDot = "0123456789."

var (
	errNotNumber = errors.New("is not a plain decimal number")
	errTooLarge  = errors.New("is too large")
)

// ParseNumber reads a plain decimal. strconv alone would also accept inf, nan, 0x1p4 and 1e9.
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

// FormatNumber returns the shortest decimal that ParseNumber reads as x.
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
