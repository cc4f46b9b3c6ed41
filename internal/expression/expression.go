// Package expression compiles expressions that a user writes: conditions over an outcome for task, and expr: formulas
// for backoff. A program that imports this package can use both. An expression reads its variables and computes. It has
// no loops and no other access; one that could take long, or much memory, is refused.
package expression

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

func init() {
	task.UseExpressions(Condition)
	backoff.UseFormulas(Formula)
}

// maxLength is far above the length of what a user writes. It bounds the work of the compiler.
const maxLength = 4096

// language returns the options of both kinds of expression. Of the library's functions only the named ones are enabled.
func language(functions ...string) []expr.Option {
	options := []expr.Option{expr.DisableAllBuiltins(), expr.MaxNodes(1000)}
	for _, name := range functions {
		options = append(options, expr.EnableBuiltin(name))
	}
	return options
}

// compile compiles a text, and has c refuse what the library cannot be told to refuse.
func compile(text string, c *checker, options ...expr.Option) (*vm.Program, error) {
	program, err := expr.Compile(text, append(options, expr.Patch(c))...)
	if err == nil {
		(&work{checker: c, variables: map[string]int{}}).size(program.Node())
	}
	if err == nil && c.found != nil {
		err = c.found.Bind(file.NewSource(text))
	}
	return program, err
}

// checker refuses functions that loop over a list, and $env, which would hide from a visitor which names are used.
type checker struct{ found *file.Error }

// Visit implements the library's visitor.
func (c *checker) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BuiltinNode:
		loops := slices.ContainsFunc(n.Arguments, func(argument ast.Node) bool {
			_, ok := argument.(*ast.PredicateNode)
			return ok
		})
		if loops {
			c.refuse(n, "unknown name "+n.Name)
		}
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			c.refuse(n, "unknown name $env")
		}
	}
}

// refuse notes the first error.
func (c *checker) refuse(node ast.Node, message string) {
	if c.found == nil {
		c.found = &file.Error{Location: node.Location(), Message: message}
	}
}

// withMark formats the library's error: what is wrong, the place, and the line with a mark below it.
func withMark(text string, err error, hint string) error {
	wrong := (*file.Error)(nil)
	if !errors.As(err, &wrong) || wrong.Line < 1 { // it has no place
		wrong = &file.Error{Line: 1, Message: err.Error()}
	}
	line := strings.ReplaceAll(strings.Split(text, "\n")[wrong.Line-1], "\t", " ")
	shown, column := excerpt([]rune(line), wrong.Column)
	mark := strings.Repeat(" ", column) + "^"
	return fmt.Errorf("%s at %s\n  %s\n  %s\nhint: %s", plain(firstLine(wrong.Message)), place(wrong), shown, mark, hint)
}

func place(wrong *file.Error) string {
	if wrong.Line == 1 {
		return fmt.Sprintf("column %d", wrong.Column+1)
	}
	return fmt.Sprintf("line %d, column %d", wrong.Line, wrong.Column+1)
}

// excerptWidth is how much of a long line is shown on either side of a mark.
const excerptWidth = 50

// excerpt cuts a long line to the text near a column, and returns the column in the result.
func excerpt(line []rune, column int) (shown string, at int) {
	column = min(column, len(line))
	from, to := max(0, column-excerptWidth), min(len(line), column+excerptWidth)
	before, after := "", ""
	if from > 0 {
		before = "…"
	}
	if to < len(line) {
		after = "…"
	}
	return before + string(line[from:to]) + after, column - from + len([]rune(before))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func toInt(from any) (int, error) { return convert(from, strconv.Atoi, "whole number") }

func toFloat(from any) (float64, error) {
	return convert(from, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, "number")
}

// convert converts a number, or the text of one.
func convert[T int | float64](from any, parse func(string) (T, error), kind string) (T, error) {
	switch v := from.(type) {
	case int:
		return T(v), nil
	case float64:
		return T(v), nil
	}
	const most = 40 // bytes of the text in an error
	text, dots := fmt.Sprint(from), ""
	x, err := parse(strings.TrimSpace(text))
	if err == nil {
		return x, nil
	}
	if len(text) > most {
		text, dots = text[:most], "…"
	}
	return 0, fmt.Errorf("%q%s is no %s", text, dots, kind)
}
