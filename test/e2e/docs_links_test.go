//go:build unix

package e2e

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// link is a link or a picture in a page, without those that lead to other machines.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)]*))?\)`)

// What a page leads to is there, and so is the heading.
func TestLinksOfThePages(t *testing.T) {
	found := 0
	for _, page := range append(pages(t), "CONTRIBUTING.md") {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			found++
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", page, m[0], err)
			} else if m[2] != "" && !slices.Contains(anchors(readPage(t, target)), m[2]) {
				t.Errorf("%s: got no heading #%s in %s, want one", page, m[2], target)
			}
		}
	}
	if found < 100 {
		t.Errorf("got %d links, want more", found)
	}
}

// anchors are what the headings of a page are called in links.
func anchors(page string) (all []string) {
	for line := range strings.SplitSeq(page, "\n") {
		if hashes, title, ok := strings.Cut(line, "# "); ok && strings.Trim(hashes, "#") == "" {
			plain := strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
					return r
				}
				return -1
			}, strings.ToLower(title))
			all = append(all, plain)
		}
	}
	return all
}

func TestAnchors(t *testing.T) {
	got := anchors("# a: b, c\n#!/bin/sh\n## `retry version --json`, 2\ntext\n")
	if want := []string{"a-b-c", "retry-version---json-2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The list of a folder's pages leads to each of them, so that the site's menu does, too.
func TestEveryPageIsListed(t *testing.T) {
	lists := map[string][]string{
		"docs/README.md":           listed(t, "docs"),
		"docs/decisions/README.md": listed(t, "docs/decisions"),
		"docs/policies/README.md":  listed(t, "docs/policies"),
	}
	for list, names := range lists {
		text := readPage(t, list)
		for _, name := range names {
			if !strings.Contains(text, "]("+name+")") && !strings.Contains(text, "]("+name+"#") {
				t.Errorf("%s: got no link to %s, want one", list, name)
			}
		}
	}
}

// listed are the pages of a folder that its list has to name.
func listed(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(folder), "*.md")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if path.Base(name) != "README.md" {
			names = append(names, name)
		}
	}
	return names
}

// The first page stays short: what is longer has a page of its own in docs.
func TestREADMEIsShort(t *testing.T) {
	page := readPage(t, "README.md")
	if lines := strings.Count(page, "\n"); lines > 200 {
		t.Errorf("got %d lines, want 200 at most", lines)
	}
	if !strings.HasPrefix(page, "# retry\n\n    go run . ") || !strings.Contains(page[:200], "\n    go test ./...\n") {
		t.Errorf("got as the first lines %q, want the two commands that run the main job and all tests", page[:200])
	}
}
