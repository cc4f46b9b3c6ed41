package text

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0":                          0,
		"0s":                         0,
		"30":                         30 * time.Second,
		"0.5":                        500 * time.Millisecond,
		".5":                         500 * time.Millisecond,
		"007":                        7 * time.Second,
		"+5s":                        5 * time.Second,
		"1h30m":                      90 * time.Minute,
		"1h30m5.25s":                 90*time.Minute + 5250*time.Millisecond,
		"1.5µs":                      1500,
		"1.5us":                      1500,
		"100ns":                      100,
		"1d":                         24 * time.Hour,
		"1.5d":                       36 * time.Hour,
		".25d":                       6 * time.Hour,
		"2.d":                        48 * time.Hour,
		"1w":                         168 * time.Hour,
		"0.5w":                       84 * time.Hour,
		"1w2d3h":                     219 * time.Hour,
		"3h1d":                       27 * time.Hour,
		"1d1ns":                      24*time.Hour + 1,
		"0.3333333333333333333h":     20 * time.Minute,
		"365d":                       365 * day,
		"5min":                       5 * time.Minute,
		"90 s":                       90 * time.Second,
		"90sec":                      90 * time.Second,
		"1.5h":                       90 * time.Minute,
		"2 hours":                    2 * time.Hour,
		"1 day":                      24 * time.Hour,
		"1h 30m":                     90 * time.Minute,
		"1 hour 30 minutes":          90 * time.Minute,
		"1m30":                       90 * time.Second,
		"1h30":                       90 * time.Minute,
		"1d12":                       36 * time.Hour,
		"2 weeks 1":                  15 * day,
		"9223372036854775807ns":      math.MaxInt64,
		"106751d23h47m16.854775807s": math.MaxInt64,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q): got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseDurationErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "is empty",
		"+":                            "is empty",
		"-1s":                          "is negative",
		"-0":                           "is negative",
		"-":                            "is negative",
		"soon":                         "is not a duration",
		"NaN":                          "is not a duration",
		"inf":                          "is not a duration",
		"Inf s":                        "is not a duration",
		"1..5s":                        "is not a duration",
		"1.2.3":                        "is not a duration",
		".":                            "is not a duration",
		".s":                           "is not a duration",
		"s":                            "is not a duration",
		" 5s":                          "is not a duration",
		"++5s":                         "is not a duration",
		"5s30":                         "has no unit after 30",
		"5 5":                          "has no unit after 5",
		"1e3":                          `unknown unit "e"`,
		"0x10":                         `unknown unit "x"`,
		"1_000":                        `unknown unit "_"`,
		"1h-5m":                        `unknown unit "h-"`,
		"5 x":                          `unknown unit "x"`,
		"5min utes":                    `unknown unit "min utes"`,
		"5\ts":                         `unknown unit "\ts"`,
		"3y":                           `unknown unit "y"`,
		"1D":                           `unknown unit "D"`,
		"300y":                         `unknown unit "y"`,
		"9223372036854775808ns":        "is too long",
		"9223372036854775807ns1ns":     "is too long",
		"106752d":                      "is too long",
		"106751.999d":                  "is too long",
		"15251w":                       "is too long",
		"99999999999999999999d":        "is too long",
		"99999999999999999999":         "is too long",
		strings.Repeat("9", 400) + "d": "is too long",
	} {
		d, err := ParseDuration(text)
		if err == nil {
			t.Errorf("ParseDuration(%q): got %v, want an error", text, d)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, "parse duration: ") || !strings.Contains(got, want) ||
			strings.Count(got, "\nhint: ") != 1 {
			t.Errorf("ParseDuration(%q): got %q, want %q and one hint", text, got, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s":      0,
		"1ns":     1,
		"1.5µs":   1500,
		"500ms":   500 * time.Millisecond,
		"1s":      time.Second,
		"1.5s":    1500 * time.Millisecond,
		"1m":      time.Minute,
		"1m30s":   90 * time.Second,
		"1m500ms": time.Minute + 500*time.Millisecond,
		"1h":      time.Hour,
		"1h5s":    time.Hour + 5*time.Second,
		"1h30m":   90 * time.Minute,
		"23h59m":  24*time.Hour - time.Minute,
		"1d":      24 * time.Hour,
		"1d1ns":   24*time.Hour + 1,
		"7d":      168 * time.Hour,
		"20d10h":  490 * time.Hour,
		"365d":    365 * day,
		"-1.5s":   -1500 * time.Millisecond,
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d): got %q, want %q", d, got, want)
		}
	}
	if got := FormatDuration(math.MinInt64); !strings.HasPrefix(got, "-") {
		t.Errorf("FormatDuration(%d): got %q, want a minus", int64(math.MinInt64), got)
	}
}

// anyDuration draws durations of every order of magnitude.
func anyDuration() *rapid.Generator[time.Duration] {
	upTo := func(d time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(0, int64(d)), func(n int64) time.Duration { return time.Duration(n) })
	}
	return rapid.OneOf(upTo(time.Second), upTo(time.Hour), upTo(math.MaxInt64))
}

func TestDurationsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDuration().Draw(t, "d")
		text := FormatDuration(d)
		if got, err := ParseDuration(text); err != nil || got != d {
			t.Fatalf("%q: got %d, %v, want %d", text, got, err, d)
		}
		if got, err := ParseDuration(d.String()); err != nil || got != d {
			t.Fatalf("%q: got %d, %v, want %d", d.String(), got, err, d)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"30", "0.5", "1h30m", "1w2d3h", "1.5d", "-1s", "", "1e3", "NaN", "9223372036854775808ns",
		"106751.99d", "5µs"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if goes, goErr := time.ParseDuration(text); goErr == nil && !strings.HasPrefix(text, "-") &&
			(err != nil || d != goes) {
			t.Fatalf("%q: got %v, %v, want %v", text, d, err, goes)
		}
		if err != nil {
			if strings.Count(err.Error(), "\nhint: ") != 1 {
				t.Fatalf("got error %q, want one with a hint", err)
			}
			return
		}
		if again, err := ParseDuration(FormatDuration(d)); d < 0 || err != nil || again != d {
			t.Fatalf("%q: got %d, %v, want %d", text, again, err, d)
		}
	})
}

func TestDuration(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"}, {53 * time.Microsecond, "0.053ms"}, {999 * time.Microsecond, "1ms"}, {12 * time.Millisecond, "12ms"},
		{time.Second, "1s"}, {1560 * time.Millisecond, "1.5s"}, {9990 * time.Millisecond, "9.9s"},
		{12300 * time.Millisecond, "12s"},
		{time.Minute, "1m"}, {90 * time.Second, "1m30s"}, {time.Hour, "1h"}, {90*time.Minute + time.Second, "1h30m"},
		{49 * time.Hour, "2d1h"}, {-time.Minute, "-1m"},
	}
	for _, tt := range tests {
		if got := Duration(tt.d); got != tt.want {
			t.Errorf("%d ns: got %q, want %q", tt.d, got, tt.want)
		}
	}
}
