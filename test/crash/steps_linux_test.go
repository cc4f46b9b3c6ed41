package crash

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// sourceSteps reads the names of the steps out of the source of the journal, so that a new one cannot be forgotten.
func sourceSteps(t *testing.T) []string {
	t.Helper()
	var steps, files []string
	for _, below := range []string{"*", filepath.Join("*", "*")} {
		found, err := filepath.Glob(filepath.Join("..", "..", "state", below, "*.go"))
		testkit.Must(t, err)
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "storetest") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		testkit.Must(t, err)
		found, err := stepsIn(tree)
		testkit.Must(t, err)
		steps = append(steps, found...)
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// stepsIn returns the arguments of all calls of conn.Step.
func stepsIn(tree *ast.File) (steps []string, err error) {
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isStep(call.Fun) {
			return true
		}
		name, nameErr := nameOf(call.Args[0])
		steps, err = append(steps, name), errors.Join(err, nameErr)
		return true
	})
	return steps, err
}

// nameOf reads the argument of a step.
func nameOf(argument ast.Expr) (string, error) {
	literal, ok := argument.(*ast.BasicLit)
	if !ok {
		return "", errors.New("the name of a step is no literal")
	}
	return strconv.Unquote(literal.Value)
}

// isStep reports whether a function is Step, as package conn itself and the packages above it name it.
func isStep(e ast.Expr) bool {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		return isIdentifier(selector.X, "conn") && selector.Sel.Name == "Step"
	}
	return isIdentifier(e, "Step")
}

func isIdentifier(e ast.Expr, name string) bool {
	identifier, ok := e.(*ast.Ident)
	return ok && identifier.Name == name
}

func TestStepsIn(t *testing.T) {
	const header = "package p\nfunc f() {"
	tests := map[string]struct {
		body string
		want []string
		fail bool
	}{
		"none": {body: "go f()"},
		"in an expression": {
			body: `if err := g(func() { conn.Step("a b") }); err != nil { Step("c") }`, want: []string{"a b", "c"},
		},
		"another's step":    {body: `x.Step("a")`},
		"a name at runtime": {body: `conn.Step(name)`, want: []string{""}, fail: true},
		"the first of two":  {body: `Step(name); Step("a")`, want: []string{"", "a"}, fail: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree, err := parser.ParseFile(token.NewFileSet(), "p.go", header+test.body+"}", parser.SkipObjectResolution)
			testkit.Must(t, err)
			got, err := stepsIn(tree)
			if !slices.Equal(got, test.want) || (err != nil) != test.fail {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// The steps that must be among those of the source.
func TestSourceStepsHoldsTheTransactions(t *testing.T) {
	steps := sourceSteps(t)
	for _, want := range []string{"transaction begun", "transaction written", "transaction committed",
		"attempt counted", "task adopted"} {
		if !slices.Contains(steps, want) {
			t.Errorf("got steps %q, want %q among them", steps, want)
		}
	}
}
