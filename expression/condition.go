package expression

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/10f93571/retry/runner"
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

const conditionHint = `the names are exit, signal, status, error, stdout, stderr, body, header, attempt, elapsed and duration; ` +
	`for example exit in [1, 75] and stderr matches "timed out"`

// condition is a compiled condition. It is safe for concurrent use.
type condition struct {
	program *vm.Program
	looks   runner.CaptureMode
}

// Condition compiles an expression that is true or false of an outcome.
func Condition(text string) (runner.Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("it is longer than %d bytes\nhint: let a script decide, and tell by its exit status", maxLength)
	}
	seen := &looking{at: runner.CaptureNone}
	options := append(language("len", "lower", "upper", "trim", "abs", "min", "max", "int", "float", "string"),
		expr.Env(names{}), expr.AsBool(), expr.Patch(seen))
	program, err := compile(text, options)
	if err != nil {
		return nil, marked(text, err, hintFor(text, err))
	}
	return &condition{program: program, looks: seen.at}, nil
}

// hintFor answers the mistakes that are easily made.
func hintFor(text string, err error) string {
	message := err.Error()
	for _, word := range []string{"timeout", "any"} {
		if strings.Contains(message, "unknown name "+word) {
			return fmt.Sprintf("%s alone is a condition; in an expression write error == %q, or exit != 0", word, "timeout")
		}
	}
	if strings.Contains(text, "=~") {
		return `write stderr matches "pattern"`
	}
	if strings.Contains(message, "parsing regexp") {
		return `a pattern is a regular expression of RE2; write \\ for one backslash, or stderr contains "text" for plain text`
	}
	return conditionHint
}

// Match evaluates the condition.
func (c *condition) Match(e runner.Evidence) (bool, error) {
	result, err := expr.Run(c.program, names{
		Exit: e.ExitCode(), Signal: e.Signal, Error: string(e.Error), Stdout: e.Stdout, Stderr: e.Stderr,
		Attempt: e.Attempt, Elapsed: e.Elapsed.Seconds(), Duration: e.Duration.Seconds(),
	})
	if err != nil {
		return false, fmt.Errorf("cannot be evaluated: %s", firstLine(err.Error()))
	}
	return result == true, nil
}

// Looks returns the streams that the condition looks at.
func (c *condition) Looks() runner.CaptureMode { return c.looks }

// looking notes which streams an expression names.
type looking struct{ at runner.CaptureMode }

// Visit implements the library's visitor.
func (l *looking) Visit(node *ast.Node) {
	if name, ok := (*node).(*ast.IdentifierNode); ok {
		switch name.Value {
		case "stdout":
			l.at = l.at.And(runner.CaptureBoth)
		case "stderr":
			l.at = l.at.And(runner.CaptureStderr)
		}
	}
}
