package picture

import (
	"strings"
	"testing"

	"github.com/10f93571/retry/plot"
)

// No text lies on another, and nothing is cut off at an edge.
func TestLayout(t *testing.T) {
	for name, studies := range gallery(t) {
		t.Run(name, func(t *testing.T) {
			scene := drawn(studies)
			var seen []txt
			for _, s := range scene.shapes {
				checkInside(t, scene, s)
				if letters, ok := s.(txt); ok {
					for _, other := range seen {
						if overlap(letters.bounds(), other.bounds()) {
							t.Errorf("%q at %v lies on %q at %v", letters.words, letters.at, other.words, other.at)
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
	b := sh.bounds()
	if !(b.left >= 0 && b.top >= 0 && b.right <= s.wide && b.bottom <= s.high) {
		t.Errorf("%T %+v lies outside of %v x %v: %+v", sh, b, s.wide, s.high, sh)
	}
}

func overlap(a, b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// What stands side by side is on the same axes, so that it can be compared.
func TestSharedAxes(t *testing.T) {
	short, long := study(t, "short=constant:1s/none", 10, 8), study(t, "long=constant:6s/none", 10, 8)
	both := drawn([]plot.Study{short, long})
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
	left, right := last["short"]-leftRoom, last["long"]-columnWidth-leftRoom
	if got := right / left; got < 5.9 || got > 6.1 {
		t.Errorf("8 s ends at %.1f and 48 s at %.1f: %.2f times as far, want 6", left, right, got)
	}
}

func TestColumnsWrap(t *testing.T) {
	one := study(t, "exp:1s", 2, 2)
	for n, want := range map[int][2]float64{
		1: {columnWidth, panelsEnd + figuresHeight},
		3: {3 * columnWidth, panelsEnd + figuresHeight},
		4: {2 * columnWidth, 2 * (panelsEnd + figuresHeight)},
		5: {3 * columnWidth, 2 * (panelsEnd + figuresHeight)},
	} {
		var studies []plot.Study
		for range n {
			studies = append(studies, one)
		}
		if s := drawn(studies); s.wide != want[0] || s.high != want[1] {
			t.Errorf("%d studies: %v x %v, want %v", n, s.wide, s.high, want)
		}
	}
}

// Every retry has a dot: with more tasks than rows of pixels dots may hide one another, never with few.
func TestEveryRetryHasADot(t *testing.T) {
	count := 0
	for _, s := range drawn([]plot.Study{study(t, "exp:1s", 20, 6)}).shapes {
		if d, ok := s.(dots); ok && len(d.points) > 1 && d.fill >= roles {
			count += len(d.points)
		}
	}
	if count != 20*6 {
		t.Errorf("%d dots, want %d", count, 20*6)
	}
}

func TestEach(t *testing.T) {
	all := Each([]plot.Study{study(t, "a=exp:1s", 2, 2), study(t, "b=exp:2s", 2, 2)})
	if len(all) != 2 || !strings.Contains(all[1], "<title>b</title>") || strings.Contains(all[1], "Worst local load, 1 is even</text>") {
		t.Errorf("got %q", all)
	}
}

// wordsOf are the texts of a picture.
func wordsOf(studies ...plot.Study) (all []string) {
	for _, s := range drawn(studies).shapes {
		if letters, ok := s.(txt); ok {
			all = append(all, letters.words)
		}
	}
	return all
}

// A logarithmic axis is called one, and what stands at its begin though it comes earlier is no wave: the mark says so.
func TestAxesAreHonest(t *testing.T) {
	for spec, want := range map[string]struct{ logs, early int }{"exp:10s/full": {3, 2}, "exp:10s/none": {3, 0}, "constant:5s/30%": {1, 0}} {
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
			t.Errorf("%s: %d logarithmic axes, %d marks of what is earlier; want %+v", spec, logs, early, want)
		}
	}
}
