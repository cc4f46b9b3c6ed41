package picture

import (
	"math"
	"strings"
	"testing"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

// study plays "label=spec/jitter" through.
func study(t *testing.T, text string, tasks, retries int) plot.Study {
	t.Helper()
	label, spec, labelled := strings.Cut(text, "=")
	if !labelled {
		spec = text
	}
	curve, jitter, _ := strings.Cut(spec, "/")
	policy := task.DefaultPolicy()
	var err error
	if policy.Backoff, err = backoff.Parse(curve, jitter); err != nil {
		t.Fatal(err)
	}
	policy.Attempts = retries + 1
	s, err := plot.NewStudy(plot.Subject{Label: label, Policy: policy}, plot.Options{Tasks: tasks, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gallery are the pictures that every property is tried on.
func gallery(t *testing.T) map[string][]plot.Study {
	several := func(tasks, retries int, specs ...string) (all []plot.Study) {
		for _, s := range specs {
			all = append(all, study(t, s, tasks, retries))
		}
		return all
	}
	return map[string][]plot.Study{
		"one":         several(100, 8, "exp:1s..1m"),
		"three":       several(100, 8, "exp:10s/full", "exp:10s/equal", "sidekiq"),
		"five":        several(100, 25, "sidekiq", "zizq", "buckets:3", "fib:1s..1h", "list:1s,2s,5s,1m"),
		"far apart":   several(10, 8, "constant:1ms", "exp:365d"),
		"one retry":   several(1, 1, "exp:1s/none"),
		"many":        several(200, 99, "constant:500ms/30%"),
		"most":        several(20, 999, "exp:1s..1m"),
		"at once":     several(100, 8, "constant:0s"),
		"half 0":      several(10, 8, "linear:0s+1h/full", "list:0s,0s,1s"),
		"unbounded":   several(100, 20, "exp:1s/decorrelated"),
		"a year":      several(100, 100, "exp:1s/add:365d"),
		"nanoseconds": several(100, 8, "constant:1ns", "exp:3ns"),
		"labels": several(3, 3, "<&\"'>\x1b\u202eabc\t\xff=exp:1s/decorrelated", strings.Repeat("WIDE", 100)+"=constant:5s",
			"\u05e9\u05dc\u05d5\u05dd \u8a9e=poly:15s+n^4/add:30s*n"),
	}
}

// No text lies on another, and nothing is cut off at an edge.
func TestLayout(t *testing.T) {
	for name, studies := range gallery(t) {
		t.Run(name, func(t *testing.T) {
			scene := layout(studies)
			var seen []label
			for _, s := range scene.shapes {
				checkInside(t, scene, s)
				if letters, ok := s.(label); ok {
					for _, other := range seen {
						if overlap(boundsOf(letters), boundsOf(other)) {
							t.Errorf("got %q at %v on %q at %v", letters.text, letters.at, other.text, other.at)
						}
					}
					seen = append(seen, letters)
				}
			}
		})
	}
}

func checkInside(t *testing.T, s *scene, sh shape) {
	t.Helper()
	b := boundsOf(sh)
	if !(b.left >= 0 && b.top >= 0 && b.right <= s.width && b.bottom <= s.height) {
		t.Errorf("got %T %+v outside of %v x %v: %+v", sh, b, s.width, s.height, sh)
	}
}

// boundsOf is the smallest box that holds a shape.
func boundsOf(s shape) box {
	var points []point
	margin := 0.0
	switch s := s.(type) {
	case rectangle:
		return s.box
	case label:
		width := textWidth(s.text, s.size, s.bold)
		left := s.at.x - width*float64(s.anchor)
		return box{left, s.at.y - 0.75*s.size, left + width, s.at.y + 0.25*s.size}
	case polygon:
		points = s.points
	case line:
		points, margin = s.points, s.width/2
	case dots:
		points, margin = s.points, s.radius
	}
	b := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		b.left, b.right = min(b.left, p.x-margin), max(b.right, p.x+margin)
		b.top, b.bottom = min(b.top, p.y-margin), max(b.bottom, p.y+margin)
	}
	return b
}

func overlap(a, b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// What stands side by side is on the same axes, so that it can be compared.
func TestSharedAxes(t *testing.T) {
	short, long := study(t, "short=constant:1s/none", 10, 8), study(t, "long=constant:6s/none", 10, 8)
	both := layout([]plot.Study{short, long})
	last := map[string]float64{}
	for _, s := range both.shapes {
		if d, ok := s.(dots); ok && len(d.points) == 10 && d.radius < 3 { // the ten tasks
			column := "short"
			if d.points[0].x > columnWidth {
				column = "long"
			}
			last[column] = max(last[column], d.points[0].x)
		}
	}
	left, right := last["short"]-leftMargin, last["long"]-columnWidth-leftMargin
	if got := right / left; got < 5.9 || got > 6.1 {
		t.Errorf("8 s ends at %.1f and 48 s at %.1f: %.2f times as far, want 6", left, right, got)
	}
}

func TestColumnsWrap(t *testing.T) {
	one := study(t, "exp:1s", 2, 2)
	for n, want := range map[int][2]float64{
		1: {columnWidth, panelsHeight + figuresHeight},
		3: {3 * columnWidth, panelsHeight + figuresHeight},
		4: {2 * columnWidth, 2 * (panelsHeight + figuresHeight)},
		5: {3 * columnWidth, 2 * (panelsHeight + figuresHeight)},
	} {
		var studies []plot.Study
		for range n {
			studies = append(studies, one)
		}
		if s := layout(studies); s.width != want[0] || s.height != want[1] {
			t.Errorf("%d studies: got %v x %v, want %v", n, s.width, s.height, want)
		}
	}
}

// Every retry has a dot: with more tasks than rows of pixels dots may hide one another, never with few.
func TestEveryRetryHasADot(t *testing.T) {
	count := 0
	for _, s := range layout([]plot.Study{study(t, "exp:1s", 20, 6)}).shapes {
		if d, ok := s.(dots); ok && len(d.points) > 1 && d.fill >= firstShade {
			count += len(d.points)
		}
	}
	if count != 20*6 {
		t.Errorf("got %d dots, want %d", count, 20*6)
	}
}

func TestEach(t *testing.T) {
	all := Each([]plot.Study{study(t, "a=exp:1s", 2, 2), study(t, "b=exp:2s", 2, 2)})
	if len(all) != 2 || !strings.Contains(all[1], "<title>b</title>") ||
		strings.Contains(all[1], "Worst local load, 1 is even</text>") {
		t.Errorf("got %q", all)
	}
}

// wordsOf are the texts of a picture.
func wordsOf(studies ...plot.Study) (all []string) {
	for _, s := range layout(studies).shapes {
		if letters, ok := s.(label); ok {
			all = append(all, letters.text)
		}
	}
	return all
}

// A logarithmic axis is called one, and what stands at its begin though it comes earlier is no wave: the mark says so.
func TestAxesAreHonest(t *testing.T) {
	for spec, want := range map[string]struct{ logs, early int }{"exp:10s/full": {3, 2}, "exp:10s/none": {2, 0},
		"constant:5s/30%": {0, 0}} {
		logs, early := 0, 0
		for _, words := range wordsOf(study(t, spec, 1000, 8)) {
			if words == "(log)" {
				logs++
			}
			if strings.HasPrefix(words, "≤") {
				early++
			}
		}
		if logs != want.logs || early != want.early {
			t.Errorf("%s: got %d logarithmic axes, %d marks of what is earlier; want %+v", spec, logs, early, want)
		}
	}
}

func studies(t *testing.T, tasks, retries int, specs ...string) (all []plot.Study) {
	t.Helper()
	for _, s := range specs {
		all = append(all, study(t, s, tasks, retries))
	}
	return all
}

// A single retry has a band that can be seen.
func TestSingleRetry(t *testing.T) {
	for _, s := range layout(studies(t, 10, 1, "exp:1s/full")).shapes {
		if _, ok := s.(polygon); ok && (boundsOf(s).width() < 10 || boundsOf(s).height() < 10) {
			t.Errorf("got a band of %+v, want it larger than 10 x 10", boundsOf(s))
		}
	}
}

// Where all retries fall on one pixel, the latest is seen.
func TestLatestRetryIsSeen(t *testing.T) {
	for _, s := range layout(studies(t, 3, 4, "constant:0s")).shapes {
		if d, ok := s.(dots); ok && d.fill >= firstShade && len(d.points) > 1 && d.fill != shade(4, 4) {
			t.Errorf("got %d dots of colour %d, want the latest retry's", len(d.points), d.fill)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, words := range []string{"", "short", "a text that is too long by far", "語語語語語語語語"} {
		got := shorten(words, 10, false, 60)
		if textWidth(got, 10, false) > 60 {
			t.Errorf("%q is still %v wide", got, textWidth(got, 10, false))
		}
		if textWidth(words, 10, false) <= 60 && got != words {
			t.Errorf("%q became %q", words, got)
		}
	}
}

func TestShade(t *testing.T) {
	if shade(1, 1) != firstShade || shade(1, 9) != firstShade || shade(9, 9) != firstShade+shades-1 {
		t.Error("the first retry does not begin the scale, or the last does not end it")
	}
	for i := range colour(shades - 1) {
		a, b := light.rgba(firstShade+i), light.rgba(firstShade+i+1)
		if brightness(b.R, b.G, b.B) <= brightness(a.R, a.G, a.B) {
			t.Errorf("shade %d: got no brighter one than before, want them to differ in grey", i+1)
		}
	}
}

func brightness(r, g, b uint8) float64 {
	return 0.2126*math.Pow(float64(r), 2.2) + 0.7152*math.Pow(float64(g), 2.2) + 0.0722*math.Pow(float64(b), 2.2)
}
