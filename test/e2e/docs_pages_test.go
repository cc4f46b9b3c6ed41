//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/internal/text"
)

var prompted = regexp.MustCompile(`^( {4,8})\$ (retry .*)$`)

// withOutputs returns a page with new output below each command line of its indented blocks. The old output ends at the
// next command line, or with the block.
func withOutputs(page string, output func(line string) string) string {
	var out []string
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		m := prompted.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		out = append(out, indented(m[1], output(m[2]))...)
		after := i + 1
		for ; i+1 < len(lines) && !prompted.MatchString(lines[i+1]) &&
			(lines[i+1] == "" || strings.HasPrefix(lines[i+1], m[1])); i++ {
			if lines[i+1] != "" {
				after = i + 2
			}
		}
		out = append(out, lines[after:i+1]...) // the empty ones
	}
	return strings.Join(out, "\n")
}

func indented(indent, text string) (lines []string) {
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line != "" {
			line = indent + line
		}
		lines = append(lines, line)
	}
	return lines
}

func TestReplayed(t *testing.T) {
	const page = "text\n\n    $ retry a\n    one\n\n      two\n\n- item:\n\n        $ retry b\n        three\n        $ retry c\n        four\ntext\n"
	want := strings.NewReplacer("one\n\n      two", "<retry a>\n\n      2", "three", "<retry b>\n\n          2", "four",
		"<retry c>\n\n          2").Replace(page)
	if got := withOutputs(page, func(line string) string { return "<" + line + ">\n\n  2\n" }); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var update = flag.Bool("update", false, "rewrite what the pages show")

// The pages show what retry prints.
func TestPagesShowWhatRetryPrints(t *testing.T) {
	testkit.Slow(t, "it runs every example that shows output")
	box, tried := newSandbox(t), 0
	for _, path := range append(policyFiles(t), "docs/conditions.md", "docs/plot.md", "docs/running.md") {
		page := readPage(t, path)
		shown := withOutputs(page, func(line string) string {
			tried++
			return box.output(t, line)
		})
		compareOrUpdate(t, path, page, shown)
	}
	if tried < 15 {
		t.Errorf("got %d command lines, want more", tried)
	}
}

// compareOrUpdate compares a file with what it should be; with -update it writes the file.
func compareOrUpdate(t *testing.T, path, is, want string) {
	t.Helper()
	if is == want {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(a), len(b))-1 && a[i] == b[i] {
		i++
	}
	t.Errorf("%s:%d: got %.200q, want %.200q; if that is right, run go test ./test/e2e -run %s -update",
		path, i+1, a[i], b[i], t.Name())
}

// output returns what a real retry prints for the command line.
func (b *sandbox) output(t *testing.T, line string) string {
	t.Helper()
	lists, err := b.arguments(line)
	if err != nil || len(lists) != 1 {
		t.Fatalf("%s: %v, %v", line, lists, err)
	}
	said, err := b.command(lists[0]...).CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return strings.TrimRight(string(said), "\n")
}

const policyPages = "docs/policies"

// Every curve and jitter has a page; a second name for one is mentioned on its page.
func TestEveryPolicyHasAPage(t *testing.T) {
	for _, name := range slices.Concat(backoff.Curves(), backoff.Jitters()) {
		if name == "fixed" || name == "delay" {
			continue
		}
		if page := policyPage(t, name+".md"); !strings.HasPrefix(page, "# "+name+": ") ||
			!strings.Contains(page, "]("+name+".svg)") {
			t.Errorf("page of %s: got another title or no picture, want both", name)
		}
		if !strings.Contains(policyPage(t, "README.md"), "("+name+".md)") {
			t.Errorf("first page: got no link to %s, want one", name)
		}
	}
	if !strings.Contains(policyPage(t, "constant.md"), "`fixed:5m`, `delay:5m` and `5m` are the same") {
		t.Error("page of constant: got no explanation of fixed, want one")
	}
	for _, p := range backoff.Presets() {
		if !strings.Contains(policyPage(t, "presets.md"), "| `"+p.Name+"` |") {
			t.Errorf("preset %s: got no page, want one", p.Name)
		}
	}
}

func policyPage(t *testing.T, name string) string {
	t.Helper()
	return readPage(t, filepath.Join(policyPages, name))
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(page)
}

// Every spec that stands in the text of a page is one.
func TestSpecsOfThePagesAreSpecs(t *testing.T) {
	found := 0
	for _, path := range policyFiles(t) {
		for _, span := range codeSpans(policyPage(t, filepath.Base(path))) {
			if curve, jitter, ok := asSpec(span); ok {
				found++
				if _, err := backoff.Parse(curve, jitter); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("got %d specs, want more", found)
	}
}

func policyFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(policyPages, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return paths
}

// codeSpans are the texts between backticks; a span does not go beyond its paragraph.
func codeSpans(page string) (spans []string) {
	for paragraph := range strings.SplitSeq(page, "\n\n") {
		for i, text := range strings.Split(paragraph, "`") {
			if i%2 == 1 && !strings.HasPrefix(paragraph, "    ") {
				spans = append(spans, text)
			}
		}
	}
	return spans
}

var percentage = regexp.MustCompile(`^±?[\d.]+%$`)

// asSpec tells a spec from other texts by its first word.
func asSpec(span string) (curve, jitter string, ok bool) {
	name, _, follows := strings.Cut(span, ":")
	switch {
	case follows && slices.Contains(backoff.Curves(), name):
		return span, "", true
	case follows && name == "add" || percentage.MatchString(span):
		return "exp:1s", span, true
	}
	return "", "", false
}

var drawing = regexp.MustCompile(`(?m)^    \$ (retry plot .*--svg (\S+))$`)

// The picture of a page is the one that the command line on it draws.
func TestPicturesOfThePages(t *testing.T) {
	testkit.Slow(t, "it draws every picture of the docs")
	box, drawn := newSandbox(t), 0
	for _, path := range policyFiles(t) {
		page := readPage(t, path)
		for _, m := range drawing.FindAllStringSubmatch(page, -1) {
			drawn++
			if said := box.output(t, m[1]); said != "" {
				t.Errorf("%s: got for %s\n%s\nwant no error", path, m[1], said)
			}
			if !strings.Contains(page, "]("+m[2]+")") {
				t.Errorf("%s: got no picture %s, want one", path, m[2])
			}
			picture := filepath.Join(policyPages, m[2])
			compareOrUpdate(t, picture, readText(picture), readPage(t, filepath.Join(box.dir, m[2])))
		}
	}
	if drawn < 15 {
		t.Errorf("got %d pictures, want more", drawn)
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

// tableCells returns the cells of the i-th spec. The commands before the table are retry plot and retry simulate
// outage, or retry simulate lock.
func tableCells(of []figuresJSON, i int) []string {
	if len(of) == 1 {
		lock := of[0].Specs[i]
		return []string{
			count(&lock.Calls), count(lock.Collisions),
			formatWait(&lock.Wait.P50), formatWait(&lock.Wait.P99), formatWait(lock.Done.All),
		}
	}
	p, o := of[0].Specs[i], of[1].Specs[i]
	first, second, last := p.Retries[0].CV, p.Retries[1].CV, p.Retries[len(p.Retries)-1].CV
	return []string{
		percent(p.Load.Idle), fmt.Sprintf("%.2f", p.Load.Local), fmt.Sprintf("%.2f %.2f … %.2f", first, second, last),
		count(o.Rejected), formatWait(o.Done.P99), formatWait(o.Done.All),
	}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

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

func formatWait(ms *int64) string {
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
	box, tried := newSandbox(t), 0
	for _, path := range policyFiles(t) {
		page := readPage(t, path)
		sections := strings.Split(page, "\n## ")
		for i, section := range sections {
			var of []figuresJSON
			for _, m := range computing.FindAllStringSubmatch(section, -1) {
				of = append(of, box.simulate(t, m[1]))
				tried++
			}
			if len(of) > 0 {
				sections[i] = withCells(section, func(label string, i int) []string {
					if !isAbout(label, of[0].Specs[i].Label) {
						t.Errorf("%s: got the row %s, want %s", path, label, of[0].Specs[i].Label)
					}
					return tableCells(of, i)
				})
			}
		}
		compareOrUpdate(t, path, page, strings.Join(sections, "\n## "))
	}
	if tried < 5 {
		t.Errorf("got %d command lines, want more", tried)
	}
}

func (b *sandbox) simulate(t *testing.T, line string) (f figuresJSON) {
	t.Helper()
	if err := json.Unmarshal([]byte(b.output(t, line)), &f); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return f
}

// isAbout reports whether a row is about a spec: it names the jitter, as in exp:10s/full, or the spec itself.
func isAbout(row, spec string) bool {
	row, _, _ = strings.Cut(row, "](")
	return strings.Contains(row, spec[strings.LastIndex(spec, "/")+1:])
}

// withCells returns a text with new cells in its first table: all cells of a row except the first.
func withCells(text string, cells func(label string, row int) []string) string {
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
