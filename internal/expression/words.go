package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// typeWords are what conditions call the types of Go.
var typeWords = map[string]string{
	"int": "number", "float64": "number", "string": "text", "bool": "true or false", "[]interface": "list",
	"map[string]string": "texts by name",
}

// plain says in words of conditions what the library says in words of Go.
func plain(message string) string {
	message = strings.ReplaceAll(message, "unexpected token EOF", "it ends too early")
	if !strings.Contains(message, "type") && !strings.HasPrefix(message, "expected ") {
		return message
	}
	words := strings.Split(strings.ReplaceAll(message, "[]interface {}", "[]interface"), " ")
	for i, word := range words {
		bare := strings.Trim(word, "(),")
		if other := typeWords[bare]; other != "" && (i == 0 || words[i-1] != "call") { // int and string are functions, too
			words[i] = strings.Replace(word, bare, other, 1)
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

const conditionHint = `the names are exit, signal, status, error, stdout, stderr, body, header, attempt, elapsed and duration; ` +
	`for example exit in [1, 75] and stderr matches "timed out"`

// hintFor answers the mistakes that are easily made.
func hintFor(text string, err error) string {
	message := err.Error()
	if _, rest, ok := strings.Cut(message, "unknown name "); ok {
		name, _, _ := strings.Cut(firstLine(rest), " ")
		return hintForName(name)
	}
	for _, mistake := range []struct{ said, hint string }{
		{"not written out", `a pattern is a text in quotes: stderr matches "timed out"; for a text from elsewhere use contains`},
		{"parsing regexp", `a pattern is a regular expression of RE2; write \\ for one backslash, or stderr contains "text" for plain text`},
		{"invalid char escape", "in quotes a backslash is written twice, in ` ` once: matches `\\d+`"},
		{"bad number syntax", "times are numbers of seconds: duration > 5"},
		{`Operator(",")`, "a list stands in brackets, as in exit in [1, 75]; for several conditions give the flag several times"},
		{`Identifier("AND")`, "write and"},
		{`Identifier("OR")`, "write or"},
		{"signal is never", `the signals are written like "SIGKILL", and "" is none`},
		{"error is never", `the errors are ` + errorClasses() + `; "" is none`},
		{"operation: not (", `what is denied stands in parentheses: not (stderr contains "a"), or stderr not contains "a"`},
		{"operation: ! (", `what is denied stands in parentheses: !(stderr contains "a"), or stderr not contains "a"`},
		{"mismatched types", `texts stand in quotes, numbers do not: exit == 75 and signal == "SIGKILL"`},
		{"expected bool", "compare it: exit == 75, or exit in [1, 75]"},
	} {
		if strings.Contains(message, mistake.said) {
			return mistake.hint
		}
	}
	unread := strings.Contains(message, `Operator("=")`) || strings.Contains(message, "'~'") // of another language
	switch {
	case unread && strings.Contains(text, "~"):
		return `write stderr matches "pattern"`
	case unread:
		return "write == to compare"
	}
	return conditionHint
}

// ours is what we call what people know by another name.
var ours = map[string]string{
	"code": "exit", "rc": "exit", "status_code": "exit", "output": "stdout", "out": "stdout", "err": "stderr", "time": "elapsed",
}

// hintForName names the nearest of those that there are.
func hintForName(name string) string {
	known := ours[strings.ToLower(name)]
	switch {
	case name == "timeout" || name == "any":
		return fmt.Sprintf("%s alone is a condition; in an expression write error == %q, or exit != 0", name, "timeout")
	case task.IsSignal(name):
		return fmt.Sprintf("%s alone is a condition; in an expression write signal == %[1]q", name)
	case known != "":
		return "did you mean " + known + "? " + conditionHint
	case len(name) < 3:
		return conditionHint
	}
	names := []string{"exit", "signal", "status", "error", "stdout", "stderr", "body", "header", "attempt", "elapsed", "duration"}
	if found := text.Nearest(name, names); found != "" {
		return "did you mean " + found + "? " + conditionHint
	}
	return conditionHint
}

func errorClasses() string {
	quoted := fmt.Sprintf("%q", task.ErrorClasses()) // ["a" "b"]
	return strings.ReplaceAll(strings.Trim(quoted, "[]"), `" "`, `", "`)
}

// most is how much of an error is said that holds what a command wrote.
const most = 200

// trouble is why an expression could not be evaluated: in one line, and not the whole output of the command.
func trouble(err error) string {
	message := err.Error()
	if wrong := (*file.Error)(nil); errors.As(err, &wrong) {
		message = wrong.Message
	}
	message = firstLine(strings.TrimPrefix(message, "runtime error: "))
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}
