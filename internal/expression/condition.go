package expression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/10f93571/retry/task"
)

// names are what a condition knows of an attempt.
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
	program *vm.Program
	looks   task.CaptureMode
}

// Condition compiles an expression that is true or false of an outcome.
func Condition(text string) (task.Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("it is longer than %d bytes\nhint: let a script decide, and tell by its exit status", maxLength)
	}
	seen := &looking{at: task.CaptureNone}
	options := append(language("len", "lower", "upper", "trim", "abs", "min", "max", "string"),
		expr.Env(names{}), expr.AsBool(), expr.Patch(seen))
	options = append(options, conversions()...)
	program, err := compile(text, options)
	if err == nil && seen.never != nil {
		err = seen.never.Bind(file.NewSource(text))
	}
	if err != nil {
		return nil, marked(text, err, hintFor(text, err))
	}
	return &condition{program: program, looks: seen.at}, nil
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
		return false, fmt.Errorf("cannot be evaluated: %s", trouble(err))
	}
	return result == true, nil
}

// Looks returns the streams that the condition looks at.
func (c *condition) Captures() task.CaptureMode { return c.looks }

// looking notes which streams an expression names, and refuses what compiles and is never meant: a misspelt signal
// would pass for a condition that just did not match, for ever.
type looking struct {
	at    task.CaptureMode
	never *file.Error
}

// Visit implements the library's visitor.
func (l *looking) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		switch n.Value {
		case "stdout":
			l.at = l.at.And(task.CaptureBoth)
		case "stderr":
			l.at = l.at.And(task.CaptureStderr)
		}
	case *ast.MemberNode:
		canonical(n.Node, n.Property)
	case *ast.BinaryNode:
		if n.Operator == "in" {
			canonical(n.Right, n.Left)
		}
		switch n.Operator {
		case "==", "!=", "in":
			l.compare(n.Left, n.Right)
			l.compare(n.Right, n.Left)
		case "matches":
			l.pattern(n.Right)
		}
	}
}

// canonical writes the name of a header as net/http does: whatever its case is, it means the same. ETag would be none
// else.
func canonical(of, name ast.Node) {
	text, ok := name.(*ast.StringNode)
	if header, isName := of.(*ast.IdentifierNode); ok && isName && header.Value == "header" {
		text.Value = capitalised(text.Value)
	}
}

// capitalised is Etag for ETag and X-Ratelimit-Limit for x-ratelimit-limit. It stands for net/textproto, which would
// bring all of net into the page of retry plot.
func capitalised(name string) string {
	words := strings.Split(strings.ToLower(name), "-")
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "-")
}

// pattern refuses one that is made of output: a MiB of text against a MiB of pattern took more than eight minutes, and
// no signal ends that.
func (l *looking) pattern(node ast.Node) {
	if _, ok := node.(*ast.StringNode); !ok && l.never == nil {
		l.never = refuse(node, "the pattern is not written out")
	}
}

// compare looks at a name and the texts that it is compared with.
func (l *looking) compare(left, right ast.Node) {
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
		if ok && l.never == nil && text.Value != "" && !canBe(name.Value, text.Value) {
			l.never = refuse(text, fmt.Sprintf("%s is never %q", name.Value, text.Value))
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

// conversions are int and float. Of a text they take the number that stands alone in it: what a command prints ends
// with a line feed.
func conversions() []expr.Option {
	return []expr.Option{
		expr.Function("int", func(from ...any) (any, error) { return whole(from[0]) },
			new(func(int) int), new(func(float64) int), new(func(string) int)),
		expr.Function("float", func(from ...any) (any, error) { return fraction(from[0]) },
			new(func(int) float64), new(func(float64) float64), new(func(string) float64)),
	}
}
