package cli

import (
	"strings"
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 21, 12, 30, 15, 0, zone)
	tests := []struct {
		text string
		want time.Time
	}{
		{"2h", now.Add(-2 * time.Hour)},
		{"3d", now.Add(-72 * time.Hour)},
		{"90", now.Add(-90 * time.Second)},
		{"0", now},
		{"12:30", time.Date(2026, 11, 21, 12, 30, 0, 0, zone)},
		{"12:31", time.Date(2026, 11, 20, 12, 31, 0, 0, zone)}, // today it is to come
		{"00:00", time.Date(2026, 11, 21, 0, 0, 0, 0, zone)},
		{"23:59", time.Date(2026, 11, 20, 23, 59, 0, 0, zone)},
		{"2026-11-20", time.Date(2026, 11, 20, 0, 0, 0, 0, zone)},
		{"2026-11-20 04:05", time.Date(2026, 11, 20, 4, 5, 0, 0, zone)},
		{"2026-11-20T04:05", time.Date(2026, 11, 20, 4, 5, 0, 0, zone)},
		{"2026-11-20 04:05:06", time.Date(2026, 11, 20, 4, 5, 6, 0, zone)},
		{"2026-01-02T23:30:00+01:00", time.Date(2026, 1, 2, 22, 30, 0, 0, time.UTC)},
	}
	for _, tt := range tests {
		if got, err := parseSince(tt.text, now); err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
}

func TestSinceRefuses(t *testing.T) {
	for _, text := range []string{"", "yesterday", "-2h", "25:00", "12:60", "2026-13-01", "2026-02-30", "12:00:00", "2h ago", "\x1b[2J"} {
		got, err := parseSince(text, time.Now())
		if err == nil || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%q: %v, %v", text, got, err)
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
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
