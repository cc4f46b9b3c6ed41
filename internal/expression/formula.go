package expression

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/10f93571/retry/backoff"
)

// quantities are the variables and functions of a formula. All are floats, so that nothing overflows or is truncated.
type quantities struct {
	N        float64                             `expr:"n"`
	Retry    float64                             `expr:"retry"` // n − 1
	Previous float64                             `expr:"prev"`  // seconds
	Rand     func(most float64) float64          `expr:"rand"`
	Min      func(first, second float64) float64 `expr:"min"`
	Max      func(first, second float64) float64 `expr:"max"`
}

const formulaHint = "the names are n (1 for the first retry), retry (n-1), prev (the delay before, in seconds), " +
	"rand(x), min, max, abs, ceil, floor and round; for example expr:15 + n^4 + rand(30)*n"

// formula is a compiled formula. It is safe for concurrent use.
type formula struct {
	program                  *vm.Program
	usesRandom, usesPrevious bool
}

// Formula compiles a delay in seconds.
func Formula(text string) (backoff.Formula, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("it is longer than %d bytes\nhint: list:1s,2s,5s names delays one by one", maxLength)
	}
	f := &formula{}
	options := append(language("abs", "ceil", "floor", "round"), expr.Env(quantities{}), expr.AsFloat64(), expr.Patch(f))
	program, err := compile(text, &checker{}, append(options, remainders()...)...)
	if err != nil {
		hint := formulaHint
		if strings.Contains(err.Error(), "bad number syntax") {
			hint = "a formula computes in seconds: 5 is 5s, 60 is 1m"
		}
		return nil, withMark(text, err, hint)
	}
	f.program = program
	return f, nil
}

// Visit implements the library's visitor: it notes what the formula uses.
func (f *formula) Visit(node *ast.Node) {
	if name, ok := (*node).(*ast.IdentifierNode); ok {
		f.usesRandom = f.usesRandom || name.Value == "rand"
		f.usesPrevious = f.usesPrevious || name.Value == "prev"
	}
}

// UsesRandom implements backoff.Formula.
func (f *formula) UsesRandom() bool { return f.usesRandom }

// UsesPrevious implements backoff.Formula.
func (f *formula) UsesPrevious() bool { return f.usesPrevious }

// Seconds implements backoff.Formula.
func (f *formula) Seconds(n int, previous float64, random func() float64) (float64, error) {
	result, err := expr.Run(f.program, quantities{
		N: float64(n), Retry: float64(n - 1), Previous: previous,
		Rand: func(most float64) float64 { return most * random() },
		Min:  math.Min, Max: math.Max,
	})
	if err != nil {
		return 0, errors.New(shortError(err))
	}
	seconds, ok := result.(float64)
	if !ok {
		return 0, fmt.Errorf("it gives %v, which is no number", result)
	}
	return seconds, nil
}

// remainders makes % work on floats. In the library it works on integers, which a formula does not have.
func remainders() []expr.Option {
	remainder := func(of ...any) (any, error) {
		first, _ := toFloat(of[0])
		second, _ := toFloat(of[1])
		return math.Mod(first, second), nil
	}
	return []expr.Option{
		expr.Function("mod", remainder,
			new(func(float64, float64) float64), new(func(float64, int) float64), new(func(int, float64) float64)),
		expr.Operator("%", "mod"),
	}
}
