package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// typeWords are the names that conditions use for the types of Go.
var typeWords = map[string]string{
	"int": "number", "float64": "number", "string": "text", "bool": "true or false", "[]interface": "list",
	"map[string]string": "texts by name",
}

// plain replaces Go's names of types in a message of the library.
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

const conditionHint = `the names are exit, signal, status, error, stdout, stderr, body, header, attempt, elapsed ` +
	`and duration; for example exit in [1, 75] and stderr matches "timed out"`

// hintFor returns a hint for common mistakes.
func hintFor(text string, err error) string {
	message := err.Error()
	if _, rest, ok := strings.Cut(message, "unknown name "); ok {
		name, _, _ := strings.Cut(firstLine(rest), " ")
		return hintForName(name)
	}
	for _, mistake := range []struct{ message, hint string }{
		{"not written out",
			`a pattern is a text in quotes: stderr matches "timed out"; for a text from elsewhere use contains`},
		{"parsing regexp", `a pattern is a regular expression of RE2; write \\ for one backslash, ` +
			`or stderr contains "text" for plain text`},
		{tooMuchWork, "write .* for .{0,500}, and join texts less often; or let a script decide, and tell by its exit status"},
		{"invalid char escape", "in quotes a backslash is written twice, in ` ` once: matches `\\d+`"},
		{"bad number syntax", "times are numbers of seconds: duration > 5"},
		{`Operator(",")`, "a list stands in brackets, as in exit in [1, 75]; " +
			"for several conditions give the flag several times"},
		{`Identifier("AND")`, "write and"},
		{`Identifier("OR")`, "write or"},
		{"signal is never", `the signals are written like "SIGKILL", and "" is none`},
		{"error is never", `the errors are ` + errorClasses() + `; "" is none`},
		{"operation: not (", `what is denied stands in parentheses: not (stderr contains "a"), or stderr not contains "a"`},
		{"operation: ! (", `what is denied stands in parentheses: !(stderr contains "a"), or stderr not contains "a"`},
		{"mismatched types", `texts stand in quotes, numbers do not: exit == 75 and signal == "SIGKILL"`},
		{"expected bool", "compare it: exit == 75, or exit in [1, 75]"},
	} {
		if strings.Contains(message, mistake.message) {
			return mistake.hint
		}
	}
	foreign := strings.Contains(message, `Operator("=")`) || strings.Contains(message, "'~'") // of another language
	switch {
	case foreign && strings.Contains(text, "~"):
		return `write stderr matches "pattern"`
	case foreign:
		return "write == to compare"
	}
	return conditionHint
}

// synonyms are names that people may expect, with the names that conditions have.
var synonyms = map[string]string{
	"code": "exit", "rc": "exit", "status_code": "exit", "output": "stdout", "out": "stdout", "err": "stderr",
	"time": "elapsed",
}

// hintForName returns a hint for an unknown name: the known name nearest to it.
func hintForName(name string) string {
	switch {
	case name == "timeout" || name == "any":
		return fmt.Sprintf("%s alone is a condition; in an expression write error == %q, or exit != 0", name, "timeout")
	case task.IsSignal(name):
		return fmt.Sprintf("%s alone is a condition; in an expression write signal == %[1]q", name)
	}
	found := synonyms[strings.ToLower(name)]
	if found == "" && len(name) >= 3 {
		found = text.Nearest(name, []string{
			"exit", "signal", "status", "error", "stdout", "stderr", "body", "header", "attempt", "elapsed", "duration",
		})
	}
	if found != "" {
		return "did you mean " + found + "? " + conditionHint
	}
	return conditionHint
}

func errorClasses() string {
	quoted := fmt.Sprintf("%q", task.ErrorClasses()) // ["a" "b"]
	return strings.ReplaceAll(strings.Trim(quoted, "[]"), `" "`, `", "`)
}

// maxMessage is the length in bytes to which the error of an evaluation is cut: it may hold the output of a command.
const maxMessage = 200

// shortError returns in one line why an expression could not be evaluated.
func shortError(err error) string {
	message := err.Error()
	if wrong := (*file.Error)(nil); errors.As(err, &wrong) {
		message = wrong.Message
	}
	message = firstLine(strings.TrimPrefix(message, "runtime error: "))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
