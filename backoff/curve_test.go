package backoff

import (
	"math"
	"strings"
	"testing"
)

var maxSeconds = Max.Seconds()

func TestBase(t *testing.T) {
	for _, row := range []struct {
		curve string
		first []float64 // d(1), d(2) … in seconds
		at1e9 float64   // d(1,000,000,000)
	}{
		{"constant:5m", []float64{300, 300, 300}, 300},
		{"fixed:5m", []float64{300, 300}, 300},
		{"constant:0", []float64{0, 0}, 0},
		{"constant:0s", []float64{0, 0}, 0},
		{"constant:400d", []float64{maxSeconds}, maxSeconds},
		{"linear:2s", []float64{2, 4, 6, 8}, maxSeconds},
		{"linear:5s+2s", []float64{5, 7, 9, 11}, maxSeconds},
		{"linear:5s+2s..10s", []float64{5, 7, 9, 10, 10}, 10},
		{"linear:5s+0s", []float64{5, 5, 5}, 5},
		{"linear:0s+1s", []float64{0, 1, 2}, maxSeconds},
		{"linear:1ns", []float64{1e-9, 2e-9}, 1},
		{"linear:400d+400d", []float64{maxSeconds, maxSeconds}, maxSeconds},
		{"exp:1s", []float64{1, 2, 4, 8, 16}, maxSeconds},
		{"exp:1s*1.5", []float64{1, 1.5, 2.25, 3.375}, maxSeconds},
		{"exp:1s*2..30s", []float64{1, 2, 4, 8, 16, 30, 30}, 30},
		{"exp:1s..30s", []float64{1, 2, 4, 8, 16, 30, 30}, 30},
		{"exp:0.5..2", []float64{0.5, 1, 2, 2}, 2},
		{"exp:1s*1", []float64{1, 1, 1}, 1},
		{"exp:1s..1s", []float64{1, 1, 1}, 1},
		{"exp:1s..400d", []float64{1, 2}, maxSeconds},
		{"exp:0", []float64{0, 0, 0}, 0},
		{"exp:1s*1000000000000", []float64{1, maxSeconds}, maxSeconds},
		{"fib:1s", []float64{1, 1, 2, 3, 5, 8, 13}, maxSeconds},
		{"fib:1s..4s", []float64{1, 1, 2, 3, 4, 4}, 4},
		{"fib:1ns", []float64{1e-9, 1e-9, 2e-9}, maxSeconds},
		{"fib:0s", []float64{0, 0, 0}, 0},
		{"fib:400d", []float64{maxSeconds, maxSeconds}, maxSeconds},
		{"poly:15s+n^4", []float64{16, 31, 96, 271, 640}, maxSeconds},
		{"poly:15s+n^2.5..1h", []float64{16, 20.656854249, 30.588457268, 47}, 3600},
		{"poly:0s+n^0.5", []float64{1, 1.414213562, 1.732050808, 2}, 31622.776601684},
		{"poly:1s+n^0", []float64{2, 2}, 2},
		{"poly:400d+n^400", []float64{maxSeconds, maxSeconds}, maxSeconds},
		{"list:1s,2s,5s,1m", []float64{1, 2, 5, 60, 60}, 60},
		{"list:5s,0s,400d", []float64{5, 0, maxSeconds}, maxSeconds},
		{"buckets:3", []float64{4, 14, 36, 76}, maxSeconds},
		{"buckets:1", []float64{1, 2, 3}, maxSeconds},
		{"sidekiq", []float64{15, 16, 31, 96, 271}, maxSeconds},
	} {
		s := parse(t, row.curve, "")
		for i, want := range row.first {
			if got := s.Base(i + 1); got != sec(want) {
				t.Errorf("%s: d(%d): got %v, want %v", row.curve, i+1, got, sec(want))
			}
		}
		if got := s.Base(1e9); got != sec(row.at1e9) {
			t.Errorf("%s: d(1e9): got %v, want %v", row.curve, got, sec(row.at1e9))
		}
		if got := s.Base(math.MaxInt); got < 0 || got > Max {
			t.Errorf("%s: d(MaxInt): got %v, want 0 to Max", row.curve, got)
		}
		if s.Base(0) != s.Base(1) || s.Base(math.MinInt) != s.Base(1) {
			t.Errorf("%s: got %v and %v for n below 1, want d(1) %v", row.curve, s.Base(0), s.Base(math.MinInt),
				s.Base(1))
		}
	}
}

// The last delay that is still exact, and the next one, which saturates.
func TestBaseSaturates(t *testing.T) {
	for _, row := range []struct {
		curve string
		n     int
		last  float64
	}{
		{"linear:2d", 182, 364 * 86400},
		{"exp:1s", 25, 1 << 24},
		{"fib:1s", 37, 24157817},
		{"poly:15s+n^4", 74, 29986591},
		{"sidekiq", 75, 29986591},
	} {
		s := parse(t, row.curve, "")
		if got := s.Base(row.n); got != sec(row.last) {
			t.Errorf("%s: d(%d): got %v, want %v", row.curve, row.n, got, sec(row.last))
		}
		if got := s.Base(row.n + 1); got != Max {
			t.Errorf("%s: d(%d): got %v, want Max", row.curve, row.n+1, got)
		}
	}
}

func TestCanonicalCurve(t *testing.T) {
	for text, want := range map[string]string{
		"constant:5m":           "constant:5m",
		"fixed:5m":              "constant:5m",
		"constant:0":            "constant:0s",
		"constant:90":           "constant:1m30s",
		"constant:1w":           "constant:7d",
		"linear:2s":             "linear:2s",
		"linear:2s+2s":          "linear:2s",
		"linear:5s+2s":          "linear:5s+2s",
		"linear:5s + 2s .. 60s": "linear:5s+2s..1m",
		"exp:1s":                "exp:1s",
		"exp:1s*2..30s":         "exp:1s..30s",
		"exp:1s*1.50":           "exp:1s*1.5",
		"exp:0.5..90":           "exp:500ms..1m30s",
		"exp:0.5..5":            "exp:500ms..5s",
		"fib:1s..60s":           "fib:1s..1m",
		"poly:15+n^4.0":         "poly:15s+n^4",
		"poly:15s + n^2.5..1h":  "poly:15s+n^2.5..1h",
		"list:1,2, 5,60":        "list:1s,2s,5s,1m",
		"list:7s":               "list:7s",
		"buckets:3.0":           "buckets:3",
		"sidekiq":               "sidekiq",
		"zizq":                  "poly:15s+n^4",
		"aws":                   "exp:1s..20s",
		"grpc":                  "exp:1s*1.6..2m",
		"lock-busy":             "constant:500ms",
	} {
		s := parse(t, text, "")
		if got := s.Curve(); got != want {
			t.Errorf("Parse(%q).Curve(): got %q, want %q", text, got, want)
		}
	}
}

func TestCurveErrors(t *testing.T) {
	for _, row := range []struct{ text, reason, hint string }{
		{"", "it is empty", "exp:1s*2..30s"},
		{"constant:", "the delay is missing", "constant:5m"},
		{"constant:-5m", `the delay "-5m" is negative`, "constant:5m"},
		{"constant:5m..10m", "constant takes no cap", "constant:5m"},
		{"fixed:soon", `"soon" is not a duration`, "constant:5m"},
		{"linear:", "the step is missing", "linear:5s+2s..1m"},
		{"linear:5s+", "the step is missing", "linear:5s+2s..1m"},
		{"linear:+2s", "the initial delay is missing", "linear:5s+2s..1m"},
		{"linear:5s+2s..4s", "the cap 4s is below the first delay 5s", "linear:5s+2s..1m"},
		{"exp:", "the initial delay is missing", "exp:1s*2..30s"},
		{"exp:-1s", `the initial delay "-1s" is negative`, "exp:1s*2..30s"},
		{"exp:0.5.5", `"0.5.5" is not a duration`, "exp:1s*2..30s"},
		{"exp:1s..", "the cap is missing", "exp:1s*2..30s"},
		{"exp:..30s", "the initial delay is missing", "exp:1s*2..30s"},
		{"exp:1s..2s..3s", `the cap "2s..3s" is not a duration`, "exp:1s*2..30s"},
		{"exp:10s..5s", "the cap 5s is below the first delay 10s", "exp:1s*2..30s"},
		{"exp:1s*", "the multiplier is missing", "exp:1s*2..30s"},
		{"exp:1s*0.5", "the multiplier 0.5 is below 1", "exp:1s*2..30s"},
		{"exp:1s*-2", `the multiplier "-2" is not a plain decimal number`, "exp:1s*2..30s"},
		{"exp:1s*inf", `the multiplier "inf" is not a plain decimal number`, "exp:1s*2..30s"},
		{"exp:1s*nan", "is not a plain decimal number", "exp:1s*2..30s"},
		{"exp:1s*0x2", "is not a plain decimal number", "exp:1s*2..30s"},
		{"exp:1s*" + strings.Repeat("9", 400), "is too large", "exp:1s*2..30s"},
		{"exp:300000d", "is too long", "exp:1s*2..30s"},
		{"fib:", "the delay is missing", "fib:1s..1m"},
		{"fib:1s..500ms", "the cap 500ms is below the first delay 1s", "fib:1s..1m"},
		{"poly:", "the base delay is missing", "poly:15s+n^4..1h"},
		{"poly:15s", "wants a +n^exponent", "poly:15s+n^4..1h"},
		{"poly:15s+4", "wants a +n^exponent", "poly:15s+n^4..1h"},
		{"poly:15s+n^", "the exponent is missing", "poly:15s+n^4..1h"},
		{"poly:15s+n^-1", `the exponent "-1" is not a plain decimal number`, "poly:15s+n^4..1h"},
		{"poly:15s+n^4..15s", "the cap 15s is below the first delay 16s", "poly:15s+n^4..1h"},
		{"list:", "the delay 1 is missing", "list:1s,2s,5s,1m"},
		{"list:1s,,5s", "the delay 2 is missing", "list:1s,2s,5s,1m"},
		{"list:1s,2s,", "the delay 3 is missing", "list:1s,2s,5s,1m"},
		{"list:1s,x", `the delay 2 "x" is not a duration`, "list:1s,2s,5s,1m"},
		{"list:1s..2s", "list takes no cap", "list:1s,2s,5s,1m"},
		{"buckets:", "the exponent is missing", "buckets:3"},
		{"buckets:3s", "is not a plain decimal number", "buckets:3"},
		{"expr:15 + n^4", "not part of this program", "expr:15 + n^4 + rand(30)*n"},
		{"exponential:1s", `there is no curve "exponential"`, "write exp, or exp:FIRST..MAX"},
		{"EXP:1s", `there is no curve "EXP"`, "did you mean exp:1s*2..30s?"},
		{"const:5s", `there is no curve "const"`, "did you mean constant:5m?"},
		{"liner:5s", `there is no curve "liner"`, "did you mean linear:5s+2s..1m?"},
		{"zizq:5s", `there is no curve "zizq"`, "did you mean zizq?"},
		{":5s", `there is no curve ""`, "for example exp:1s*2..30s; there are constant, "},
		{"quadratic:5s", `there is no curve "quadratic"`, "for example exp:1s*2..30s; there are constant, "},
		{"poly", "there is no preset of that name", "did you mean poly:15s+n^4..1h?"},
		{"exponential", "there is no preset of that name", "write exp, or exp:FIRST..MAX"},
		{"1s,5s", "there is no preset of that name", "write list:1s,5s"},
		{"-5", "there is no preset of that name", "for example exp:1s*2..30s"},
		{"sidekick", "there is no preset of that name", "did you mean sidekiq?"},
		{"lockbusy", "there is no preset of that name", "did you mean lock-busy?"},
		{"whatever", "there is no preset of that name", "sidekiq, zizq, aws, grpc, lock-busy"},
		{strings.Repeat("exp", 1000), "there is no preset of that name", "for example exp:1s*2..30s"},
	} {
		_, err := Parse(row.text, "")
		wantError(t, row.text, err, "parse backoff ", row.reason, row.hint)
	}
}

// wantError checks an error: its prefix, its reason, and a hint of one line.
func wantError(t *testing.T, text string, err error, where, reason, hint string) {
	t.Helper()
	if err == nil {
		t.Errorf("%.60q: got no error, want %q", text, reason)
		return
	}
	message, help, _ := strings.Cut(err.Error(), "\nhint: ")
	if !strings.HasPrefix(message, where) || !strings.Contains(message, reason) || !strings.Contains(help, hint) ||
		strings.Contains(help, "\n") {
		t.Errorf("%.60q: got %q, want %q, %q and the hint %q", text, err, where, reason, hint)
	}
}
