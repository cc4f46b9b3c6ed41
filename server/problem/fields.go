package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// String returns a text.
func (o *Object) String(name, fallback string) string {
	if raw := o.value(name); raw != nil {
		if text, ok := o.text(o.Pointer(name), raw); ok {
			return text
		}
	}
	return fallback
}

// Strings returns a list of at most so many texts. Wrong elements are left out. A longer list is one mistake, and is
// not read.
func (o *Object) Strings(name string, most int) (texts []string) {
	for i, raw := range o.elements(name, most) {
		if text, ok := o.text(o.Pointer(name)+"/"+strconv.Itoa(i), raw); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// StringOrList returns what Strings does, or one text as a list.
func (o *Object) StringOrList(name string, most int) []string {
	if raw := o.value(name); raw != nil && raw[0] != '[' {
		if text, ok := o.text(o.Pointer(name), raw); ok {
			return []string{text}
		}
		return nil
	}
	return o.Strings(name, most)
}

func (o *Object) text(pointer string, raw json.RawMessage) (string, bool) {
	if !o.want(pointer, raw, "a string", '"') {
		return "", false
	}
	text, ok := unquote(raw)
	if !ok {
		o.report.add(pointer, "the string has half of a surrogate pair")
	}
	return text, ok
}

// Bool returns true or false.
func (o *Object) Bool(name string, fallback bool) bool {
	raw := o.value(name)
	switch {
	case raw == nil:
		return fallback
	case raw[0] == 't' || raw[0] == 'f':
		return raw[0] == 't'
	}
	o.Failf(name, "want a boolean, got %s", kind(raw))
	return fallback
}

// Int returns a whole number from least to most. 1e3 and 1000.0 are whole numbers, too.
func (o *Object) Int(name string, fallback, least, most int64) int64 {
	if raw := o.value(name); raw != nil {
		if n, ok := o.integer(o.Pointer(name), raw, least, most); ok {
			return n
		}
	}
	return fallback
}

// Ints returns a list of at most so many whole numbers, from least to most. Wrong elements are left out.
func (o *Object) Ints(name string, count int, least, most int64) (numbers []int64) {
	for i, raw := range o.elements(name, count) {
		if n, ok := o.integer(o.Pointer(name)+"/"+strconv.Itoa(i), raw, least, most); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (o *Object) integer(pointer string, raw json.RawMessage, least, most int64) (int64, bool) {
	n, err := wholeNumber(raw)
	switch {
	case err != nil:
		o.report.add(pointer, err.Error())
	case n < least || n > most:
		o.report.add(pointer, fmt.Sprintf("want a whole number from %d to %d, got %s", least, most, brief(raw)))
		return 0, false
	}
	return n, err == nil
}

// wholeNumber reads a number that has no fraction. Where it is spelled with a dot or an exponent, it is at most 2⁵³:
// a float64 is exact up to that.
func wholeNumber(raw json.RawMessage) (int64, error) {
	if kind(raw) != "a number" {
		return 0, fmt.Errorf("want a whole number, got %s", kind(raw))
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, fmt.Errorf("want a whole number, got %s", brief(raw))
	}
	return int64(f), nil
}

// brief shortens a number that is quoted: one of 1 MiB is valid JSON.
func brief(raw json.RawMessage) string {
	if len(raw) > 32 {
		return string(raw[:32]) + "…"
	}
	return string(raw)
}

// Float returns a number from least to most.
func (o *Object) Float(name string, fallback, least, most float64) float64 {
	raw := o.value(name)
	if raw == nil {
		return fallback
	}
	if kind(raw) != "a number" {
		o.Failf(name, "want a number, got %s", kind(raw))
		return fallback
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < least || f > most {
		o.Failf(name, "want a number from %v to %v, got %s", least, most, brief(raw))
		return fallback
	}
	return f
}

// Milliseconds returns a duration that is given as a whole number of milliseconds, from 0 on.
func (o *Object) Milliseconds(name string, fallback time.Duration) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond) // 292 years
	if !o.Has(name) {
		return fallback
	}
	return time.Duration(o.Int(name, fallback.Milliseconds(), 0, most)) * time.Millisecond
}

// Time returns a time that is given in milliseconds since 1970 UTC or as RFC 3339, up to the year 9999. The word "now"
// is the given time, unless that is zero. The zero time is returned where the field is missing or wrong.
func (o *Object) Time(name string, now time.Time) time.Time {
	raw := o.value(name)
	switch {
	case raw == nil:
		return time.Time{}
	case string(raw) == `"now"` && !now.IsZero():
		return now
	}
	t, err := readTime(raw)
	if err != nil {
		hint := "milliseconds since 1970 or RFC 3339, such as 2006-01-02T15:04:05Z"
		if !now.IsZero() {
			hint = `"now", ` + hint
		}
		o.Failf(name, "%w\nhint: give %s", err, hint)
		return time.Time{}
	}
	return t
}

func readTime(raw json.RawMessage) (time.Time, error) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	if raw[0] != '"' {
		ms, err := wholeNumber(raw)
		if err != nil {
			return time.Time{}, fmt.Errorf("want a time, got %s", strings.TrimPrefix(err.Error(), "want a whole number, got "))
		}
		if ms < 0 || ms > last.UnixMilli() {
			return time.Time{}, fmt.Errorf("want a time from 1970 to 9999, got %d", ms)
		}
		return time.UnixMilli(ms).UTC(), nil
	}
	text, _ := unquote(raw)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("invalid time %q", brief(json.RawMessage(text)))
	}
	if t = t.UTC(); t.Unix() < 0 || t.After(last) {
		return time.Time{}, fmt.Errorf("want a time from 1970 to 9999, got %s", text)
	}
	return t, nil
}
