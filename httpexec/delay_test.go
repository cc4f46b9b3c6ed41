package httpexec

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// headers makes a header of names and values in turn.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestReadWord(t *testing.T) {
	asked := func(d time.Duration) Word { return Word{Delay: d, Asked: true} }
	nothing := func(d time.Duration) Word { return Word{Delay: d, Nothing: true} }
	tests := []struct {
		name    string
		headers []string
		want    Word
	}{
		{"nothing said", nil, Word{}},

		{"seconds", []string{"Retry-After", "120"}, asked(2 * time.Minute)},
		{"at once", []string{"Retry-After", "0"}, asked(0)},
		{"a fraction", []string{"Retry-After", "1.5"}, asked(1500 * time.Millisecond)},
		{"spaces around", []string{"Retry-After", " 7 "}, asked(7 * time.Second)},
		{"a year and more", []string{"Retry-After", "99999999999999999999"}, asked(backoff.Max)},
		{"more than a float holds", []string{"Retry-After", "9" + strings.Repeat("0", 400)}, asked(backoff.Max)},
		{"negative", []string{"Retry-After", "-5"}, Word{}},
		{"an exponent", []string{"Retry-After", "1e3"}, Word{}},
		{"infinite", []string{"Retry-After", "inf"}, Word{}},
		{"a lone dot", []string{"Retry-After", "."}, Word{}},
		{"garbage", []string{"Retry-After", "soon"}, Word{}},
		{"empty", []string{"Retry-After", ""}, Word{}},
		{"two, of which one is garbage", []string{"Retry-After", "soon", "Retry-After", "7"}, asked(7 * time.Second)},
		{"two, the longest", []string{"Retry-After", "7", "Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", "Retry-After", "5"}, asked(time.Minute)},
		{"two in a line", []string{"Retry-After", "120, 240"}, asked(4 * time.Minute)},

		{"a date", []string{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT"}, asked(time.Minute)},
		{"a date of RFC 850", []string{"Retry-After", "Friday, 02-Jan-26 03:05:05 GMT"}, asked(time.Minute)},
		{"a date of asctime", []string{"Retry-After", "Fri Jan  2 03:05:05 2026"}, asked(time.Minute)},
		{"a date in the past", []string{"Retry-After", "Fri, 02 Jan 2026 03:04:04 GMT"}, asked(0)},
		{"a date far away", []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, asked(backoff.Max)},
		{"a date of ISO 8601", []string{"Retry-After", "2026-01-02T03:05:05Z"}, Word{}},

		{"milliseconds", []string{"Retry-After-Ms", "250"}, asked(250 * time.Millisecond)},
		{"milliseconds go before seconds", []string{"Retry-After", "1", "Retry-After-Ms", "1250"}, asked(1250 * time.Millisecond)},
		{"garbage goes before nothing", []string{"Retry-After", "1", "Retry-After-Ms", "x"}, asked(time.Second)},

		{"draft", []string{"RateLimit", `"default";r=0;t=30`}, nothing(30 * time.Second)},
		{"draft, something left", []string{"RateLimit", `"default";r=1;t=30`}, Word{}},
		{"draft, no time", []string{"RateLimit", `"default";r=0`}, nothing(0)},
		{"draft, the one that is used up", []string{"RateLimit", `"burst";r=0;t=5, "daily";r=90;t=3600`}, nothing(5 * time.Second)},
		{"draft, the longest that is used up", []string{"RateLimit", `"a";r=0;t=60, "b";r=0;t=5`}, nothing(time.Minute)},
		{"draft, two lines", []string{"RateLimit", `"a";r=9;t=5`, "RateLimit", `"b";r=0;t=7`}, nothing(7 * time.Second)},
		{"draft, a name with everything", []string{"RateLimit", `"a;r=0;t=9,b";r=4;t=1`}, Word{}},
		{"draft, a name with a quote", []string{"RateLimit", `"a\";r=0;t=9,b";r=4;t=1`}, Word{}},
		{"draft, older", []string{"RateLimit", "limit=10, remaining=0, reset=5"}, nothing(5 * time.Second)},
		{"draft, older, something left", []string{"RateLimit", "limit=10, remaining=3, reset=5"}, Word{}},
		{"draft, garbage", []string{"RateLimit", `r=;t=;"`}, Word{}},
		{"Retry-After goes before the draft", []string{"RateLimit", `"a";r=0;t=30`, "Retry-After", "3"},
			Word{Delay: 3 * time.Second, Asked: true, Nothing: true}},

		{"vendor, seconds", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"}, nothing(30 * time.Second)},
		{"vendor, since 1970", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323105"}, nothing(time.Minute)},
		{"vendor, since 1970 with a fraction", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323105.5"},
			nothing(60500 * time.Millisecond)},
		{"vendor, milliseconds since 1970", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323105000"}, nothing(time.Minute)},
		{"vendor, past", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323000"}, nothing(0)},
		{"vendor, far away", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9" + strings.Repeat("0", 40)}, nothing(backoff.Max)},
		{"vendor, something left", []string{"X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "30"}, Word{}},
		{"vendor, reset alone", []string{"X-RateLimit-Reset", "30"}, Word{}},
		{"vendor, no reset", []string{"X-RateLimit-Remaining", "0"}, nothing(0)},
		{"vendor, garbage", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "later"}, nothing(0)},
		{"vendor, after a date in the past",
			[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9", "Retry-After", "Fri, 02 Jan 2026 03:04:04 GMT"},
			Word{Delay: 9 * time.Second, Asked: true, Nothing: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ReadWord(headers(tt.headers...), now); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func FuzzReadWord(f *testing.F) {
	f.Add("120", "250", `"default";r=0;t=30`, "0", "1767323105")
	f.Add("Fri, 02 Jan 2026 03:05:05 GMT", "x", "limit=10, remaining=0, reset=5", "0", "30")
	f.Fuzz(func(t *testing.T, after, precise, draft, remaining, reset string) {
		w := ReadWord(headers("Retry-After", after, "Retry-After-Ms", precise, "RateLimit", draft,
			"X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset), now)
		if w.Delay < 0 || w.Delay > backoff.Max {
			t.Errorf("delay %v", w.Delay)
		}
		if w.Delay > 0 && !w.Asked && !w.Nothing {
			t.Errorf("a delay of %v for no reason", w.Delay)
		}
	})
}
