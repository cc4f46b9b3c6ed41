package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSource(t *testing.T) {
	tree := t.TempDir()
	for file, text := range map[string]string{
		"main.go": `package main

// main is documented here.
func main() {
	shared()
	a.Exported()
	twice()
	twice()
}
`,
		"other.go":         "package main\n\nfunc shared() {\n}\n\nfunc twice() { here() }\n\nfunc here() {}\n\nfunc unused() {}\n",
		"a/a.go":           "package a\n\nfunc Exported() {\n\tx := 1\n\t_ = x\n\t_ = x\n\tv.method()\n}\n\nfunc shared() {}\n",
		"a/b.go":           "package a\n\nfunc (v T) method() {}\n\nvar _ = shared\n",
		"a/a_test.go":      "package a\n\nfunc test() { here() }\n",
		"testdata/no.go":   "not Go",
		".hidden/a.go":     "not Go",
		"a/_ignored/no.go": "not Go",
	} {
		path := filepath.Join(tree, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readSource(tree)
	if err != nil {
		t.Fatal(err)
	}
	if s.files != 4 || s.lines != 9+10+10+5 || s.testFiles != 1 || s.testLines != 3 {
		t.Errorf("got %d files of %d lines, %d test files of %d lines", s.files, s.lines, s.testFiles, s.testLines)
	}
	if got, want := s.largestFolder(), "3 (a)"; got != want {
		t.Errorf("got largest folder %s, want %s", got, want)
	}
	if got, want := []int{s.percentile(50), s.percentile(90), s.percentile(100)}, []int{1, 6, 6}; !slices.Equal(got, want) {
		t.Errorf("got lengths %v, want %v", got, want)
	}
	all, short := s.usedOnce()
	long := "a/a.go: Exported, 6 lines, used in main.go"
	want := []string{"a/a.go: shared, 1 lines, used in a/b.go", "a/b.go: method, 1 lines, used in a/a.go",
		"other.go: shared, 2 lines, used in main.go"}
	slices.Sort(short)
	if !slices.Equal(short, want) {
		t.Errorf("got short functions %q, want %q", short, want)
	}
	if len(all) != len(short)+1 || !slices.Contains(all, long) {
		t.Errorf("got functions %q, want also %q", all, long)
	}
	if _, err := readSource(t.TempDir()); err == nil {
		t.Error("a folder without Go code: got no error")
	}
}
