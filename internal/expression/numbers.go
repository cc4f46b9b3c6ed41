package expression

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
)

// conversions are int and float. Of a text they take the number that stands alone in it: what a command prints ends with a line feed.
func conversions() []expr.Option {
	return []expr.Option{
		expr.Function("int", func(from ...any) (any, error) { return whole(from[0]) },
			new(func(int) int), new(func(float64) int), new(func(string) int)),
		expr.Function("float", func(from ...any) (any, error) { return fraction(from[0]) },
			new(func(int) float64), new(func(float64) float64), new(func(string) float64)),
	}
}

// remainders make % work on all numbers: to the library it is a matter of whole ones, and none of a formula's is.
func remainders() []expr.Option {
	remainder := func(of ...any) (any, error) {
		first, _ := fraction(of[0])
		second, _ := fraction(of[1])
		return math.Mod(first, second), nil
	}
	return []expr.Option{
		expr.Function("mod", remainder, new(func(float64, float64) float64), new(func(float64, int) float64), new(func(int, float64) float64)),
		expr.Operator("%", "mod"),
	}
}

func whole(from any) (int, error) {
	switch v := from.(type) {
	case int:
		return v, nil
	case float64:
		return int(v), nil
	}
	text := fmt.Sprint(from)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%s is no whole number", shortened(text))
	}
	return n, nil
}

func fraction(from any) (float64, error) {
	switch v := from.(type) {
	case int:
		return float64(v), nil
	case float64:
		return v, nil
	}
	text := fmt.Sprint(from)
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no number", shortened(text))
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
