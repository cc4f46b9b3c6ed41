//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/backoff"
)

const policyPages = "docs/policies"

// Whatever curve and jitter the parser knows has a page; what is another word for one is on its page.
func TestEveryPolicyHasAPage(t *testing.T) {
	for _, name := range slices.Concat(backoff.Curves(), backoff.Jitters()) {
		if name == "fixed" {
			continue
		}
		if page := policyPage(t, name+".md"); !strings.HasPrefix(page, "# "+name+": ") || !strings.Contains(page, "]("+name+".svg)") {
			t.Errorf("the page of %s has another title, or no picture", name)
		}
		if !strings.Contains(policyPage(t, "README.md"), "("+name+".md)") {
			t.Errorf("the first page does not lead to %s", name)
		}
	}
	if !strings.Contains(policyPage(t, "constant.md"), "`fixed:5m` is the same") {
		t.Error("the page of constant does not say what fixed is")
	}
	for _, p := range backoff.Presets() {
		if !strings.Contains(policyPage(t, "presets.md"), "| `"+p.Name+"` |") {
			t.Errorf("the preset %s is on no page", p.Name)
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
		t.Errorf("only %d specs were found", found)
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

// A page that a page leads to is there, and so is the heading.
func TestLinksOfThePages(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, path := range append(policyFiles(t), filepath.Join("docs", "conditions.md")) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, path), -1) {
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			if there := readPage(t, target); m[2] != "" && !slices.Contains(anchors(there), m[2]) {
				t.Errorf("%s: %s has no heading #%s", path, target, m[2])
			}
		}
	}
}

// anchors are what the headings of a page are called in links.
func anchors(page string) (all []string) {
	for line := range strings.SplitSeq(page, "\n") {
		if hashes, title, ok := strings.Cut(line, "# "); ok && strings.Trim(hashes, "#") == "" {
			plain := strings.Map(func(r rune) rune {
				if strings.ContainsRune(".,:;()`?", r) {
					return -1
				}
				return r
			}, strings.ToLower(title))
			all = append(all, strings.ReplaceAll(plain, " ", "-"))
		}
	}
	return all
}
