package flags

import (
	"strings"
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	now := time.Date(2026, 3, 4, 22, 0, 0, 0, berlin)
	tests := []struct {
		text string
		want time.Time
	}{
		{text: "23:30", want: time.Date(2026, 3, 4, 23, 30, 0, 0, berlin)},
		{text: "22:00", want: now},
		{text: "00:30", want: time.Date(2026, 3, 5, 0, 30, 0, 0, berlin)},
		{text: "2026-03-04T23:30:00Z", want: time.Date(2026, 3, 5, 0, 30, 0, 0, berlin)},
		{text: "50m", want: time.Date(2026, 3, 4, 22, 50, 0, 0, berlin)},
	}
	for _, tt := range tests {
		got, err := parseMoment(tt.text, now)
		if err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: got %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"", "24:00", "noon", "2026-03-04", "12"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestSince(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 21, 12, 30, 15, 0, zone)
	tests := []struct {
		text string
		want time.Time
	}{
		{text: "2h", want: now.Add(-2 * time.Hour)},
		{text: "3d", want: now.Add(-72 * time.Hour)},
		{text: "today", want: time.Date(2026, 11, 21, 0, 0, 0, 0, zone)},
		{text: "yesterday", want: time.Date(2026, 11, 20, 0, 0, 0, 0, zone)},
		{text: "2 hours ago", want: now.Add(-2 * time.Hour)},
		{text: "90", want: now.Add(-90 * time.Second)},
		{text: "0", want: now},
		{text: "12:30", want: time.Date(2026, 11, 21, 12, 30, 0, 0, zone)},
		{text: "12:31", want: time.Date(2026, 11, 20, 12, 31, 0, 0, zone)}, // today it is to come
		{text: "00:00", want: time.Date(2026, 11, 21, 0, 0, 0, 0, zone)},
		{text: "23:59", want: time.Date(2026, 11, 20, 23, 59, 0, 0, zone)},
		{text: "2026-11-20", want: time.Date(2026, 11, 20, 0, 0, 0, 0, zone)},
		{text: "2026-11-20 04:05", want: time.Date(2026, 11, 20, 4, 5, 0, 0, zone)},
		{text: "2026-11-20T04:05", want: time.Date(2026, 11, 20, 4, 5, 0, 0, zone)},
		{text: "2026-11-20 04:05:06", want: time.Date(2026, 11, 20, 4, 5, 6, 0, zone)},
		{text: "2026-01-02T23:30:00+01:00", want: time.Date(2026, 1, 2, 22, 30, 0, 0, time.UTC)},
	}
	for _, tt := range tests {
		if got, err := parseSince(tt.text, now); err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: got %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

func TestSinceRefuses(t *testing.T) {
	for _, text := range []string{"", "tomorrow", "-2h", "25:00", "12:60", "2026-13-01", "2026-02-30", "12:00:00",
		"ago", "2h ago ago", "\x1b[2J"} {
		got, err := parseSince(text, time.Now())
		if err == nil || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%q: got %v, %v, want an error with one hint", text, got, err)
		}
	}
}

func FuzzSince(f *testing.F) {
	for _, text := range []string{"2h", "15:04", "2026-11-20", "2026-01-02T23:30:00Z", "9999999w", "24:00", ""} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 21, 12, 30, 15, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseSince(text, now)
		if (err == nil) == got.IsZero() && text != "0001-01-01" && !strings.HasPrefix(text, "0001-01-01T") {
			t.Errorf("%q: got %v, %v, want a time or an error", text, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: got %v, want a hint", text, err)
		}
	})
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1": 1, "4096": 4096, "1b": 1, "1k": 1 << 10, "1K": 1 << 10, "1kb": 1 << 10, "1KiB": 1 << 10, "512M": 512 << 20, "512mb": 512 << 20,
		"2GiB": 2 << 30, "1.5G": 3 << 29, "1T": 1 << 40, "1P": 1 << 50, "3 MiB": 3 << 20, "1e3": 1000,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "-1", "-1G", "-0.1", "x", "M", "1X", "1GBs", "1 G B", "1,5G", "two", "1e999", "0x10", "1..5", "+", "NaN", "Inf", "1\x00", "1\x1b[2JG", "١",
	} {
		got := Size(42)
		err := got.UnmarshalText([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "invalid size ") || !strings.Contains(err.Error(), ""+
			"\nhint: write it like 512M, 2GiB, or a number of bytes") || got != 42 {
			t.Errorf("%q: got %d, %v, want 42 and an error with a hint", text, got, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\x00\x1b") {
			t.Errorf("got %q, want it without control characters", err)
		}
	}
}

func TestSizeIsShownAsItIsWritten(t *testing.T) {
	for n, want := range map[Size]string{0: "0B", 512: "512B", 1 << 10: "1KiB", 3 << 29: "1.5GiB", 2 << 30: "2GiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, text := range []string{"2GiB", "512M", "-1", "1e18P", "nan ", "inf ", "9999999999P", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s Size
		if err := s.UnmarshalText([]byte(text)); s < 0 || (err != nil && s != 0) {
			t.Errorf("%q: got %d, %v, want a size of 0 or more", text, s, err)
		}
	})
}
