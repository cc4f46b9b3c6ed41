package expression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/10f93571/retry/task"
)

// names are the variables of a condition.
type names struct {
	Exit     int               `expr:"exit"`   // 128 + n for signal n
	Signal   string            `expr:"signal"` // "SIGKILL"; empty for none
	Status   int               `expr:"status"` // of an HTTP reply; 0 for none
	Error    string            `expr:"error"`  // "timeout"; empty for none
	Stdout   string            `expr:"stdout"`
	Stderr   string            `expr:"stderr"`
	Body     string            `expr:"body"`
	Header   map[string]string `expr:"header"`
	Attempt  int               `expr:"attempt"`
	Elapsed  float64           `expr:"elapsed"`  // seconds since the task began
	Duration float64           `expr:"duration"` // seconds of the attempt
}

// condition is a compiled condition. It is safe for concurrent use.
type condition struct {
	program  *vm.Program
	captures task.CaptureMode
	uses     []string
}

// Condition compiles an expression that is true or false of an outcome.
func Condition(text string) (task.Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("it is longer than %d bytes"+
			"\nhint: let a script decide, and tell by its exit status", maxLength)
	}
	v := &visitor{captures: task.CaptureNone}
	options := append(language("len", "lower", "upper", "trim", "abs", "min", "max", "string"),
		expr.Env(names{}), expr.AsBool(), expr.Patch(v))
	program, err := compile(text, &v.checker, append(options, conversions()...)...)
	if err != nil {
		return nil, withMark(text, err, hintFor(text, err))
	}
	return &condition{program: program, captures: v.captures, uses: v.uses}, nil
}

// Match evaluates the condition.
func (c *condition) Match(e task.Evidence) (bool, error) {
	known := names{
		Exit: e.ExitCode(), Signal: e.Signal, Error: string(e.Error), Stdout: e.Stdout, Stderr: e.Stderr,
		Attempt: e.Attempt, Elapsed: e.Elapsed.Seconds(), Duration: e.Duration.Seconds(),
	}
	if e.Reply != nil {
		known.Status, known.Header, known.Body = e.Reply.Status, e.Reply.Header, e.Reply.Body
	}
	result, err := expr.Run(c.program, known)
	if err != nil {
		return false, fmt.Errorf("cannot be evaluated: %s", shortError(err))
	}
	return result == true, nil
}

// Captures returns the streams that the condition reads.
func (c *condition) Captures() task.CaptureMode { return c.captures }

// Uses reports whether the condition looks at a name.
func (c *condition) Uses(name string) bool { return slices.Contains(c.uses, name) }

// visitor notes which names and streams an expression reads, and refuses certain mistakes that compile: a condition
// with a misspelt signal would never match, and nobody would notice.
type visitor struct {
	checker  checker
	captures task.CaptureMode
	uses     []string // names
}

// Visit implements the library's visitor.
func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.uses = append(v.uses, n.Value)
		switch n.Value {
		case "stdout":
			v.captures = v.captures.And(task.CaptureBoth)
		case "stderr":
			v.captures = v.captures.And(task.CaptureStderr)
		}
	case *ast.MemberNode:
		canonical(n.Node, n.Property)
	case *ast.BinaryNode:
		if n.Operator == "in" {
			canonical(n.Right, n.Left)
		}
		switch n.Operator {
		case "==", "!=", "in":
			v.compare(n.Left, n.Right)
			v.compare(n.Right, n.Left)
		case "matches":
			v.pattern(n.Right)
		}
	}
}

// canonical writes the name of a header as net/http does: "ETag" and "etag" become "Etag".
func canonical(of, name ast.Node) {
	text, ok := name.(*ast.StringNode)
	header, isName := of.(*ast.IdentifierNode)
	if !ok || !isName || header.Value != "header" {
		return
	}
	words := strings.Split(strings.ToLower(text.Value), "-")
	for i, word := range words { // net/textproto would bring all of net into the page of retry plot
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	text.Value = strings.Join(words, "-")
}

// pattern refuses a pattern that is made of output: matching 1 MiB of text with a pattern of 1 MiB took more than eight
// minutes, and no signal interrupts it.
func (v *visitor) pattern(node ast.Node) {
	if _, ok := node.(*ast.StringNode); !ok {
		v.checker.refuse(node, "the pattern is not written out")
	}
}

// compare checks the texts that a name is compared with.
func (v *visitor) compare(left, right ast.Node) {
	name, ok := left.(*ast.IdentifierNode)
	if !ok {
		return
	}
	texts := []ast.Node{right}
	if list, ok := right.(*ast.ArrayNode); ok {
		texts = list.Nodes
	}
	for _, node := range texts {
		text, ok := node.(*ast.StringNode)
		if ok && text.Value != "" && !canBe(name.Value, text.Value) {
			v.checker.refuse(text, fmt.Sprintf("%s is never %q", name.Value, text.Value))
		}
	}
}

func canBe(name, text string) bool {
	switch name {
	case "signal":
		return task.IsSignal(text)
	case "error":
		return slices.Contains(task.ErrorClasses(), task.ErrorClass(text))
	}
	return true
}

// conversions returns the functions int and float. Of a text they ignore white space around a number, as the output of
// a command ends with a line feed.
func conversions() []expr.Option {
	return []expr.Option{
		expr.Function("int", func(from ...any) (any, error) { return toInt(from[0]) },
			new(func(int) int), new(func(float64) int), new(func(string) int)),
		expr.Function("float", func(from ...any) (any, error) { return toFloat(from[0]) },
			new(func(int) float64), new(func(float64) float64), new(func(string) float64)),
	}
}
