// Command house measures how the code is divided: files, lines, functions, and how much of it a run goes through.
//
//	go run ./test/house [-list] [CHECKOUT]
//
// It prints a table for docs/architecture.md. It measures any checkout of this module, so that two can be compared.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

//go:embed trace.sh
var traceScript string

func main() {
	list := flag.Bool("list", false, "also print the functions used once, and the frames and files of each run")
	flag.Parse()
	checkout := "."
	if flag.NArg() > 0 {
		checkout = flag.Arg(0)
	}
	if err := run(checkout, *list); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(checkout string, list bool) error {
	src, err := readSource(checkout)
	if err != nil {
		return err
	}
	once, short := src.usedOnce()
	share := func(functions []string) string {
		return fmt.Sprintf("%d (%.1f %%)", len(functions), 100*float64(len(functions))/float64(len(src.functions)))
	}
	row := func(what string, value any) { fmt.Printf("| %s | %v |\n", what, value) }
	fmt.Print("| what | |\n|---|--:|\n")
	row("Go files without tests, nor what only tests import", src.files)
	row("lines in them", src.lines)
	row("test files", src.testFiles)
	row("lines in them", src.testLines)
	row("Go files in the largest folder, with tests", src.largestFolder())
	row("functions (here and below without tests)", len(src.functions))
	row("lines of a function, median", src.percentile(50))
	row("lines of a function, 90th percentile", src.percentile(90))
	row("functions used exactly once, from another file", share(once))
	row("of these, functions of at most 5 lines", share(short))

	cmd := exec.Command("bash", "-c", traceScript, "trace.sh", checkout)
	cmd.Stderr = os.Stderr
	traced, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("trace retry: %w", err)
	}
	details := append([]string{"functions used exactly once, from another file:"}, once...)
	for part := range strings.SplitSeq(strings.TrimSpace(string(traced)), "\n\n") {
		lines := strings.Split(part, "\n") // a title, then a line for each file or frame
		row(lines[0], len(lines)-1)
		details = append(append(details, "", lines[0]+":"), lines[1:]...)
	}
	if list {
		fmt.Println("\n" + strings.Join(details, "\n"))
	}
	return nil
}

// source is what the Go files of a checkout contain.
type source struct {
	files, lines, testFiles, testLines int
	inFolder                           map[string]int // Go files by folder
	functions                          []function
	declared                           map[string]int      // declarations by function.key
	uses                               map[string][]string // the files of each use, by function.key
}

type function struct {
	file, name string
	lines      int // from "func" to the closing brace, without the doc comment
}

// key is where uses are looked up. An exported name may be used in any folder, another one in its own.
func (f function) key() string {
	if ast.IsExported(f.name) {
		return f.name
	}
	return path.Dir(f.file) + " " + f.name
}

// readSource reads the files that the go command sees: none in testdata, nor in folders that begin with "." or "_".
func readSource(checkout string) (*source, error) {
	s := &source{inFolder: map[string]int{}, declared: map[string]int{}, uses: map[string][]string{}}
	tree := os.DirFS(checkout)
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (name == "testdata" || strings.ContainsAny(name[:1], "._")):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return fmt.Errorf("read source: %w", err)
		}
		return s.add(file, text)
	})
	if err == nil && len(s.functions) == 0 {
		err = fmt.Errorf("read source: there is no Go code in %s", checkout)
	}
	return s, err
}

// add counts one file. Names are compared without types: whatever has the name of a function counts as a use of it.
func (s *source) add(file string, text []byte) error {
	lines := bytes.Count(text, []byte("\n"))
	s.inFolder[path.Dir(file)]++
	imported := bytes.Contains(text, []byte("\t\"testing\"\n")) // by tests only, such as a conformance suite
	if strings.HasSuffix(file, "_test.go") || imported {
		s.testFiles, s.testLines = s.testFiles+1, s.testLines+lines
		return nil
	}
	s.files, s.lines = s.files+1, s.lines+lines
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse source: %w", err)
	}
	var declares *ast.Ident
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			declares = node.Name // not a use; Inspect visits it before the next declaration
			f := function{file, node.Name.Name, set.Position(node.End()).Line - set.Position(node.Pos()).Line + 1}
			s.functions = append(s.functions, f)
			s.declared[f.key()]++
		case *ast.Ident:
			if node != declares {
				key := function{file: file, name: node.Name}.key()
				s.uses[key] = append(s.uses[key], file)
			}
		}
		return true
	})
	return nil
}

// usedOnce lists the functions whose name is declared once and used once, in another file, and the short ones of them.
func (s *source) usedOnce() (all, short []string) {
	for _, f := range s.functions {
		uses := s.uses[f.key()]
		if s.declared[f.key()] > 1 || len(uses) != 1 || uses[0] == f.file {
			continue
		}
		line := fmt.Sprintf("%s: %s, %d lines, used in %s", f.file, f.name, f.lines, uses[0])
		all = append(all, line)
		if f.lines <= 5 {
			short = append(short, line)
		}
	}
	return all, short
}

// percentile is the smallest length that at least p percent of the functions do not exceed.
func (s *source) percentile(p int) int {
	var lengths []int
	for _, f := range s.functions {
		lengths = append(lengths, f.lines)
	}
	slices.Sort(lengths)
	return lengths[max((len(lengths)*p+99)/100, 1)-1]
}

func (s *source) largestFolder() string {
	folders := slices.Sorted(maps.Keys(s.inFolder))
	folder := slices.MaxFunc(folders, func(a, b string) int { return s.inFolder[a] - s.inFolder[b] })
	return fmt.Sprintf("%d (%s)", s.inFolder[folder], folder)
}
