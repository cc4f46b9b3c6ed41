package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each promise of SECURITY.md names tests that are there.
func TestSecurityNamesItsTests(t *testing.T) {
	page, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| promise | test |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 15 {
		t.Fatalf("got %d promises, want a row for each", len(rows))
	}
	words := regexp.MustCompile("`([^`]+)`")
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		var names []string // whose folder follows
		proven := false
		for _, word := range words.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			switch name := word[1]; {
			case strings.HasPrefix(name, "Test"):
				names = append(names, name)
			case strings.HasSuffix(name, ".txt"):
				if _, err := os.Stat(name); err != nil {
					t.Error(err)
				}
				proven = true
			default:
				for _, test := range names {
					if !hasTest(t, name, test) {
						t.Errorf("got no %s in %s, want the test that holds: %s", test, name, cells[0])
					}
				}
				proven, names = proven || names != nil, nil
			}
		}
		if !proven || names != nil {
			t.Errorf("got %q without a test and its folder, want both", row)
		}
	}
}

// hasTest reports whether a folder has a test.
func hasTest(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "\nfunc "+test+"(t *testing.T) {") {
			return true
		}
	}
	return false
}
