package expression

import (
	"reflect"
	"regexp/syntax"

	"github.com/expr-lang/expr/ast"
)

// mostWork bounds what an expression does with texts, counted in texts of task.ConditionTail bytes that it makes, and
// in parts of patterns that it matches with one. 100 parts take about two seconds, and no signal interrupts them.
const mostWork = 100

const tooMuchWork = "too much work where the output is long"

// work adds up what an expression does with texts.
type work struct {
	checker   *checker
	variables map[string]int // the size of each
	done      int
}

// size returns how many long texts the value of a node may be as long as. Each text that is made counts as work.
func (w *work) size(node ast.Node) (size int) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return max(1, w.variables[n.Value])
	case *ast.VariableDeclaratorNode:
		w.variables[n.Name] = max(w.size(n.Value), w.variables[n.Name])
		return w.size(n.Expr)
	case *ast.BinaryNode:
		size = w.size(n.Left)
		if pattern, ok := n.Right.(*ast.StringNode); ok && n.Operator == "matches" {
			w.add(node, size*patternParts(pattern.Value))
		}
		size += w.size(n.Right)
	case *ast.UnaryNode:
		size = w.size(n.Node)
	case *ast.ChainNode:
		size = w.size(n.Node)
	case *ast.MemberNode:
		size = w.size(n.Node)
	case *ast.SliceNode:
		size = w.size(n.Node)
	case *ast.ConditionalNode:
		size = w.sum(n.Cond, n.Exp1, n.Exp2)
	case *ast.CallNode:
		size = w.sum(n.Arguments...)
	case *ast.BuiltinNode:
		size = w.sum(n.Arguments...)
	case *ast.SequenceNode:
		size = w.sum(n.Nodes...)
	case *ast.ArrayNode:
		size = w.sum(n.Nodes...)
	case *ast.MapNode:
		size = w.sum(n.Pairs...)
	case *ast.PairNode:
		size = w.sum(n.Key, n.Value)
	default: // a constant
		return 1
	}
	size = min(size, mostWork+1)
	if t := node.Type(); t == nil || t.Kind() == reflect.String || t.Kind() == reflect.Interface {
		w.add(node, size)
	}
	return size
}

func (w *work) sum(nodes ...ast.Node) (size int) {
	for _, node := range nodes {
		size += w.size(node)
	}
	return size
}

func (w *work) add(node ast.Node, more int) {
	if w.done += more; w.done > mostWork {
		w.checker.refuse(node, tooMuchWork)
	}
}

// patternParts estimates how many places of a pattern a matcher may have to follow at once. A pattern that does not
// compile is refused elsewhere.
func patternParts(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return parts(parsed)
}

func parts(re *syntax.Regexp) (count int) {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) / period(re.Rune)
	case syntax.OpRepeat:
		return min(max(re.Min, re.Max, 1)*parts(re.Sub[0]), mostWork+1)
	}
	for _, sub := range re.Sub {
		count += parts(sub)
	}
	return max(1, count)
}

// period is the shortest distance at which a text repeats itself: in "aaaa" a match may begin at each place.
func period(text []rune) int {
	for p := 1; p < len(text); p++ {
		if repeats(text, p) {
			return p
		}
	}
	return len(text)
}

func repeats(text []rune, period int) bool {
	for i := period; i < len(text); i++ {
		if text[i] != text[i-period] {
			return false
		}
	}
	return true
}
