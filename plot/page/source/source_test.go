package source

import (
	"os"
	"strings"
	"testing"
)

// The engine that is checked in is made from the sources that are checked in.
func TestEngineIsUpToDate(t *testing.T) {
	recorded, err := os.ReadFile("../engine.sum")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := Digest("..")
	if err != nil {
		t.Fatal(err)
	}
	if digest != strings.TrimSpace(string(recorded)) {
		t.Error("the sources of the page's engine have changed: run go generate ./plot/page")
	}
}

// The digest sees our files and others' versions: a change of either is a change of the engine.
func TestDigestCovers(t *testing.T) {
	packages, err := dependencies("..")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]listed{}
	for _, p := range packages {
		found[p.ImportPath] = p
	}
	for _, ours := range []string{"plot/page/engine", "plot/page/model", "plot/picture", "plot", "internal/expression", "task", "backoff"} {
		if p := found["github.com/10f93571/retry/"+ours]; len(p.GoFiles) == 0 || p.Module.Version != "" {
			t.Errorf("%s is not among the sources: %+v", ours, p)
		}
	}
	if p := found["github.com/expr-lang/expr"]; p.Module == nil || p.Module.Version == "" {
		t.Errorf("the expression library has no version: %+v", p)
	}
	for _, absent := range []string{"golang.org/x/image/vector", "github.com/alecthomas/kong", "github.com/mattn/go-sqlite3"} {
		if len(found[absent].GoFiles) > 0 {
			t.Errorf("the page does not need %s", absent)
		}
	}
}

func TestDigestFollowsTheText(t *testing.T) {
	dir := t.TempDir()
	p := listed{ImportPath: "example", Dir: dir, GoFiles: []string{"a.go"}}
	texts := map[string]string{}
	for _, text := range []string{"package a\n", "package a\r\n", "package b\n"} {
		if err := os.WriteFile(dir+"/a.go", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.add(&b); err != nil {
			t.Fatal(err)
		}
		texts[text] = b.String()
	}
	if texts["package a\n"] != texts["package a\r\n"] || texts["package a\n"] == texts["package b\n"] {
		t.Errorf("got %q", texts)
	}
}
