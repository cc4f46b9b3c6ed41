package sqlite

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// advance asks task.Transitions before it writes a status. There is no other statement that writes one, but for the INSERT of a task.
func TestOneStatementWritesAStatus(t *testing.T) {
	setsStatus := regexp.MustCompile(`(?is)UPDATE tasks SET (?:[^;]*,\s*)?status = .*WHERE`)
	var found []string
	for _, text := range literals(t) {
		if setsStatus.MatchString(text) || strings.Contains(text, "INSERT INTO tasks") || strings.Contains(text, "REPLACE INTO tasks") {
			found = append(found, strings.Join(strings.Fields(text), " ")[:30])
		}
	}
	slices.Sort(found)
	want := []string{"INSERT INTO tasks (id, parent,", "UPDATE tasks SET status = ?1, "}
	if !slices.Equal(found, want) {
		t.Errorf("got the statements %q, want %q", found, want)
	}
}

// literals returns all string literals of the package's own files.
func literals(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		must(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				must(t, err)
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}
