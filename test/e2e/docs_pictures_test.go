//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/internal/text"
)

var drawing = regexp.MustCompile(`(?m)^    \$ (retry plot .*--svg (\S+))$`)

// The picture of a page is the one that the command line on it draws.
func TestPicturesOfThePages(t *testing.T) {
	testkit.Slow(t, "it draws every picture of the docs")
	bench, drawn := newDocsBench(t), 0
	for _, path := range policyFiles(t) {
		page := readPage(t, path)
		for _, m := range drawing.FindAllStringSubmatch(page, -1) {
			drawn++
			if said := bench.says(t, m[1]); said != "" {
				t.Errorf("%s: %s\n%s", path, m[1], said)
			}
			if !strings.Contains(page, "]("+m[2]+")") {
				t.Errorf("%s does not show %s", path, m[2])
			}
			picture := filepath.Join(policyPages, m[2])
			sameOrUpdated(t, picture, readText(picture), readPage(t, filepath.Join(bench.dir, m[2])))
		}
	}
	if drawn < 15 {
		t.Errorf("only %d pictures were drawn", drawn)
	}
}

// readText is what is in a file; nothing where there is none yet.
func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// figuresJSON are those of retry plot and of retry simulate; docs/json.md describes them.
type figuresJSON struct {
	Specs []struct {
		Label      string
		Load       struct{ Idle, Local float64 }
		Retries    []struct{ CV float64 }
		Calls      int64
		Rejected   *int64
		Collisions *int64
		Wait       struct{ P50, P95, P99 int64 } `json:"wait_ms"`
		Done       struct{ P99, All *int64 }     `json:"done_ms"`
	}
}

// row is what a table has of the i-th spec. The commands before the table are retry plot and retry simulate outage, or retry simulate lock.
func row(of []figuresJSON, i int) []string {
	if len(of) == 1 {
		lock := of[0].Specs[i]
		return []string{count(&lock.Calls), count(lock.Collisions), long(&lock.Wait.P50), long(&lock.Wait.P99), long(lock.Done.All)}
	}
	p, o := of[0].Specs[i], of[1].Specs[i]
	first, second, last := p.Retries[0].CV, p.Retries[1].CV, p.Retries[len(p.Retries)-1].CV
	return []string{
		share(p.Load.Idle), fmt.Sprintf("%.2f", p.Load.Local), fmt.Sprintf("%.2f %.2f … %.2f", first, second, last),
		count(o.Rejected), long(o.Done.P99), long(o.Done.All),
	}
}

func share(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// count is a number with its thousands apart.
func count(n *int64) string {
	if n == nil {
		return "–"
	}
	text := fmt.Sprint(*n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func long(ms *int64) string {
	if ms == nil {
		return "never"
	}
	d := time.Duration(*ms) * time.Millisecond
	switch {
	case d >= 48*time.Hour:
		d = d.Round(24 * time.Hour)
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	default:
		d = d.Round(10 * time.Millisecond)
	}
	return text.FormatDuration(d)
}

var computing = regexp.MustCompile(`(?m)^    (retry .*--json)$`)

// The figures of a section are those that its command lines print.
func TestFiguresOfThePages(t *testing.T) {
	testkit.Slow(t, "it simulates every table of the docs")
	if raceDetector {
		t.Skip("a million retries take a minute with the race detector, and are the same")
	}
	bench, tried := newDocsBench(t), 0
	for _, path := range policyFiles(t) {
		page := readPage(t, path)
		sections := strings.Split(page, "\n## ")
		for i, section := range sections {
			var of []figuresJSON
			for _, m := range computing.FindAllStringSubmatch(section, -1) {
				of = append(of, bench.computes(t, m[1]))
				tried++
			}
			if len(of) > 0 {
				sections[i] = retabled(section, func(label string, i int) []string {
					if !about(label, of[0].Specs[i].Label) {
						t.Errorf("%s: the row %s is about %s", path, label, of[0].Specs[i].Label)
					}
					return row(of, i)
				})
			}
		}
		sameOrUpdated(t, path, page, strings.Join(sections, "\n## "))
	}
	if tried < 5 {
		t.Errorf("only %d command lines were tried", tried)
	}
}

func (b *docsBench) computes(t *testing.T, line string) (f figuresJSON) {
	t.Helper()
	if err := json.Unmarshal([]byte(b.says(t, line)), &f); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return f
}

// about tells whether a row is that of a spec: it names the jitter of exp:10s/full, and a spec of one word.
func about(row, spec string) bool {
	row, _, _ = strings.Cut(row, "](")
	return strings.Contains(row, spec[strings.LastIndex(spec, "/")+1:])
}

// retabled is a text in whose first table the cells after the first of each row are new.
func retabled(text string, cells func(label string, row int) []string) string {
	lines := strings.Split(text, "\n")
	row := -1
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "|---"):
			row = 0
		case row >= 0 && !strings.HasPrefix(line, "| "):
			return strings.Join(lines, "\n")
		case row >= 0:
			label, _, _ := strings.Cut(line[2:], " |")
			lines[i] = "| " + strings.Join(append([]string{label}, cells(label, row)...), " | ") + " |"
			row++
		}
	}
	return strings.Join(lines, "\n")
}
