package picture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// width is about how wide a text becomes, rather too much than too little: the reader's font is not known.
func width(words string, size float64, bold bool) float64 {
	sum := 0.0
	for _, r := range words {
		sum += letter(r)
	}
	if bold {
		sum *= 1.07
	}
	return sum * size
}

// letter is the width of a letter as a share of the size.
func letter(r rune) float64 {
	switch {
	case strings.ContainsRune("ijl.,:;|'!()[]/ ·", r):
		return 0.33
	case strings.ContainsRune("mwMW%@…—", r):
		return 0.95
	case r < 0x250 && unicode.IsUpper(r):
		return 0.7
	case r < 0x590:
		return 0.58
	}
	return 1.1
}

// shorten cuts a text where it would be wider than there is room.
func shorten(words string, size float64, bold bool, room float64) string {
	if width(words, size, bold) <= room {
		return words
	}
	for words != "" && width(words+"…", size, bold) > room {
		_, last := utf8.DecodeLastRuneInString(words)
		words = words[:len(words)-last]
	}
	return words + "…"
}

// longest is how much of a label is looked at.
const longest = 200

// visible shows what a picture must not contain raw: control characters, which XML forbids, those that turn the direction of what
// follows, and invalid UTF-8.
func visible(label string) string {
	var b strings.Builder
	for i, r := range []rune(strings.ToValidUTF8(label, "\uFFFD")) {
		switch {
		case i >= longest:
			return b.String() + "…"
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Short is a time in its largest unit, with three digits: "20.4 d".
func Short(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{
		{year, "y"}, {24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"},
		{time.Millisecond, "ms"}, {time.Microsecond, "µs"}, {time.Nanosecond, "ns"},
	} {
		if d >= u.size {
			return digits(float64(d)/float64(u.size)) + " " + u.name
		}
	}
	return "0 s"
}

// digits is a number with three digits, more only before the point.
func digits(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	after := min(max(2-int(math.Floor(math.Log10(math.Abs(x)))), 0), 4)
	text := strconv.FormatFloat(x, 'f', after, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// often is a rate in the unit in which it can be read.
func often(rate float64) string {
	switch {
	case rate == 0 || rate >= 0.1:
		return digits(rate) + "/s"
	case rate*3600 >= 0.1:
		return digits(rate*3600) + "/h"
	}
	return digits(rate*3600*24) + "/d"
}
