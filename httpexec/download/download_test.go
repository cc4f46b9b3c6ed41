package download

import "testing"

func TestParseContentRange(t *testing.T) {
	none := ContentRange{}
	for text, want := range map[string]ContentRange{
		"bytes 0-9/20": {0, 9, 20}, "Bytes 3-3/4": {3, 3, 4}, "bytes 0-9/*": {0, 9, -1}, "bytes */20": {0, -1, 20},
		" bytes  5-6/7 ": {5, 6, 7},
		"":               none, "bytes": none, "bytes 0-9": none, "bytes */*": none, "items 0-9/20": none, "bytes 9-0/20": none,
		"bytes 0-20/20": none,
		"bytes -1-2/3":  none, "bytes 0-/3": none, "bytes +0-1/3": none, "bytes 0-1/99999999999999999999": none,
		"bytes a-1/3": none,
	} {
		if got, ok := ParseContentRange(text); ok != (want != none) || (ok && got != want) {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, ok, want)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 0-9/20", "bytes */5", "bytes 1-2/*", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := ParseContentRange(text)
		if ok && (r.First < 0 || r.Last < r.First-1 || (r.Total >= 0 && r.Last >= r.Total) || (r.Total < 0 && r.Last < 0)) {
			t.Errorf("%q: got %+v, want a valid range", text, r)
		}
	})
}
