// Package expression compiles the expressions that a person writes: conditions over an outcome for runner, and expr:
// formulas for backoff. Importing it is what makes both understand them. An expression can look at what it is given and
// compute; it reaches nothing else, and it ends: there are no loops. Only text that it joins to itself again and again
// can fill the memory.
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

// maxLength is far beyond what a person writes, and bounds what a compiler is given.
const maxLength = 4096

// language is what both kinds of expression have in common: of the library's own functions only those that are pure,
// and plain.
func language(functions ...string) []expr.Option {
	options := []expr.Option{expr.DisableAllBuiltins(), expr.MaxNodes(1000)}
	for _, name := range functions {
		options = append(options, expr.EnableBuiltin(name))
	}
	return options
}

// compile refuses what the library cannot be told to refuse.
func compile(text string, options []expr.Option) (*vm.Program, error) {
	refused := &refusal{}
	program, err := expr.Compile(text, append(options, expr.Patch(refused))...)
	if err == nil && refused.found != nil {
		err = refused.found.Bind(file.NewSource(text))
	}
	return program, err
}

// refusal finds functions that loop over a list, and $env, through which names could be reached that nobody sees being
// looked at.
type refusal struct{ found *file.Error }

// Visit implements the library's visitor.
func (r *refusal) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BuiltinNode:
		loops := slices.ContainsFunc(n.Arguments, func(argument ast.Node) bool {
			_, ok := argument.(*ast.PredicateNode)
			return ok
		})
		if loops {
			r.found = refuse(n, "unknown name "+n.Name)
		}
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			r.found = refuse(n, "unknown name $env")
		}
	}
}

func refuse(node ast.Node, message string) *file.Error {
	return &file.Error{Location: node.Location(), Message: message}
}

// marked puts the library's error in our form: what is wrong, and where, with a mark below the place.
func marked(text string, err error, hint string) error {
	wrong := (*file.Error)(nil)
	if !errors.As(err, &wrong) || wrong.Line < 1 { // it is about the whole
		wrong = &file.Error{Line: 1, Message: err.Error()}
	}
	line := strings.ReplaceAll(strings.Split(text, "\n")[wrong.Line-1], "\t", " ")
	shown, column := around([]rune(line), wrong.Column)
	return fmt.Errorf("%s at %s\n  %s\n  %s^\nhint: %s", plain(firstLine(wrong.Message)), place(wrong), shown, strings.Repeat(" ", column), hint)
}

func place(wrong *file.Error) string {
	if wrong.Line == 1 {
		return fmt.Sprintf("column %d", wrong.Column+1)
	}
	return fmt.Sprintf("line %d, column %d", wrong.Line, wrong.Column+1)
}

// reach is how much of a long line is shown on either side of a mark.
const reach = 50

// around cuts a long line to what is near a column, and returns where that stands then.
func around(line []rune, column int) (shown string, at int) {
	column = min(column, len(line))
	from, to := max(0, column-reach), min(len(line), column+reach)
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

func whole(from any) (int, error) { return number(from, strconv.Atoi, "whole number") }

func fraction(from any) (float64, error) {
	return number(from, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, "number")
}

// number converts a number, or the text of one.
func number[T int | float64](from any, parse func(string) (T, error), kind string) (T, error) {
	switch v := from.(type) {
	case int:
		return T(v), nil
	case float64:
		return T(v), nil
	}
	text := fmt.Sprint(from)
	x, err := parse(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%s is no %s", shortened(text), kind)
	}
	return x, nil
}

// shortened is a text in one line: its beginning, where it is long.
func shortened(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}
