package expression

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func evidence(change func(*task.Evidence)) task.Evidence {
	e := task.Evidence{
		Outcome: task.Outcome{Exit: 75, Stdout: "out\n", Stderr: "line 1\nconnection timed out\n",
			Duration: 1500 * time.Millisecond},
		Attempt: 3, Elapsed: time.Minute,
	}
	if change != nil {
		change(&e)
	}
	return e
}

func TestCondition(t *testing.T) {
	killed := func(e *task.Evidence) { e.Exit, e.Signal = 137, "SIGKILL" }
	late := func(e *task.Evidence) { e.Exit, e.Signal, e.Error = 143, "SIGTERM", task.ErrorTimeout }
	replied := func(e *task.Evidence) {
		e.Exit, e.Reply = 22, &task.Reply{Status: 409, Header: map[string]string{"X-Reason": "busy", "Etag": "v1"},
			Body: "try later"}
	}
	tests := []struct {
		text   string
		change func(*task.Evidence)
		want   bool
	}{
		{"exit == 75", nil, true},
		{"exit in [1, 75] and stderr matches \"timed out\"", nil, true},
		{"exit in [1, 2]", nil, false},
		{"exit in 70..80", nil, true},
		{"not (exit == 75)", nil, false},
		{"stderr contains 'connection'", nil, true},
		{`stderr matches "(?m)^connection .* out$"`, nil, true},
		{`stderr matches "^connection"`, nil, false}, // the text begins with line 1
		{"stdout startsWith 'out' and len(stdout) == 4", nil, true},
		{"lower('ABC') == 'abc' and trim(stdout) == 'out'", nil, true},
		{"attempt == 3 and elapsed == 60 and duration == 1.5", nil, true},
		{"duration < 2 ? exit == 75 : false", nil, true},
		{"exit == 137 and signal == 'SIGKILL'", killed, true},
		{"signal == ''", nil, true},
		{"error == 'timeout' and exit == 124", late, true},
		{"error == ''", nil, true},
		{"status == 0 and body == '' and header['X-Reason'] == ''", nil, true}, // of a command
		{"signal in ['', 'SIGTERM', 'SIG34'] and error in ['', 'not found']", nil, true},
		{"int(' 12\\n') == 12 and float('1.5\\n') == 1.5 and int(1.9) == 1 and float(3) == 3.0 and int(exit) == 75", nil,
			true},
		{`status == 409 and header["X-Reason"] == "busy" and body contains "later"`, replied, true},
		{`header["x-reason"] == "busy" and header["ETag"] == "v1" and header.etag == "v1" and header?.ETAG == "v1"`, replied,
			true},
		{`"etag" in header and "ETag" in header and not ("x" in header)`, replied, true},
		{`status >= 500 or exit != 22`, replied, false},
		{`error in ["dns", "connect", "reset"]`, replied, false},
		{"let e = exit; e > 1 && e < 100", nil, true},
		{`let t = lower(stdout + stderr); t contains "reset" or t contains "timed out" or trim(t) == ""`, nil, true},
		{`stderr matches "(?i)reset by peer|no route to host|-{10,60}|connection .{0,20}timed? ?out|^\\s+at \\w+"`, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			c, err := Condition(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Match(evidence(tt.change)); got != tt.want || err != nil {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// doubled joins a text to itself so many times over.
func doubled(name string, times int) string {
	text := ""
	for i := range times {
		next := fmt.Sprintf("t%d", i)
		text += fmt.Sprintf("let %s = %s + %[2]s; ", next, name)
		name = next
	}
	return text + name
}

// Each mistake is found when the condition is parsed, with a mark below its place.
func TestConditionRefuses(t *testing.T) {
	tests := []struct{ text, wrong, marked, hint string }{
		{"exitt == 1", "unknown name exitt at column 1", "  exitt == 1\n  ^\n", "the names are exit"},
		{"exit == 1 and stdrr == ''", "unknown name stdrr at column 15", "\n                ^\n", "stderr"},
		{"exit == 'a'", "mismatched types number and text", "\n       ^\n", "quotes"},
		{"exit + 1", "expected true or false, but got number at column 1", "\n  exit + 1\n  ^\n", "exit == 75"},
		{"exit in ['75']", "cannot use number as type text", "", ""},
		{"exit = 1", "unexpected token", "\n       ^\n", "write == to compare"},
		{"exit in [1, 2] AND attempt < 3", "AND", "", "write and"},
		{"exit == 1, attempt < 3", "unexpected token", "", "brackets"},
		{"duration > 5s", "bad number", "", "numbers of seconds"},
		{`stderr matches "\d+"`, "invalid char escape", "", "twice"},
		{"stder contains 'a'", "unknown name stder", "", "did you mean stderr?"},
		{"exitt == 1", "unknown name exitt", "", "did you mean exit?"},
		{"SIGKILL or exit == 1", "unknown name SIGKILL", "", `signal == "SIGKILL"`},
		{"code == 1", "unknown name code", "", "did you mean exit?"},
		{"q == 1", "unknown name q", "", "the names are"},
		{`signal == "KILL"`, `signal is never "KILL" at column 11`, "\n            ^\n", "SIGKILL"},
		{`signal not in ["", "SIGTERM", "INT"]`, `signal is never "INT"`, "", "SIGKILL"},
		{`"tmeout" != error or exit == 1`, `error is never "tmeout" at column 1`, "", `"timeout", "not found"`},
		{`$env["stderr"] contains "a"`, "unknown name $env at column 1", "", "the names are"},
		{`"exit" in $env`, "unknown name $env", "", ""},
		{`stderr matches "(a?){1000}b"`, tooMuchWork + " at column 8", "\n  stderr matches", ".*"},
		{`stderr matches "` + strings.Repeat("a?", 200) + `b"`, tooMuchWork, "", ""},
		{`stderr matches "` + strings.Repeat("ab", 200) + `c?d"`, tooMuchWork, "", ""},
		{`stderr matches "x.{0,60}y" or stdout matches "x.{0,60}y"`, tooMuchWork, "", ""},
		{`let a = stdout + stdout; let b = a + a; let c = b + b; let d = c + c; let e = d + d; let f = e + e; f == ""`,
			tooMuchWork, "", "join"},
		{`let a = "x" + string(exit); ` + doubled("a", 40) + ` == ""`, tooMuchWork, "", ""},
		{`let a = string([stdout, stderr]); ` + doubled("a", 40) + ` == ""`, tooMuchWork, "", ""},
		{strings.Repeat("stdout + ", 50) + `"" == ""`, tooMuchWork, "", ""},
		{"stdout matches stderr", "the pattern is not written out at column 16", "", "contains"},
		{`stdout matches ("a" + stdout)`, "the pattern is not written out", "", ""},
		{"int(true) == 1", "cannot use true or false as argument (type text) to call int at column 5", "", ""},
		{"not stderr contains 'a'", "invalid operation: not", "", "not (stderr"},
		{"!stderr contains 'a'", "invalid operation: !", "", "!(stderr"},
		{"exit ==", "it ends too early", "", ""},
		{`stderr matches "("`, "missing closing )", "\n         ^\n", "RE2"},
		{`stderr =~ "a"`, "unexpected token", "\n         ^\n", `stderr matches "pattern"`},
		{"timeout or exit == 3", "unknown name timeout", "  timeout or exit == 3\n  ^\n", `error == "timeout"`},
		{"exit == 1\n and nope", "unknown name nope at line 2, column 6", "   and nope\n       ^\n", ""},
		{"now() > 1", "unknown name now", "", ""},
		{"exit.foo == 1", "has no field foo", "", ""},
		{"len(exit) > 1", "invalid argument", "", ""},
		{"map(1..3, # * 2) == []", "unknown name map", "", ""},
		{strings.Repeat("(", 500) + "exit" + strings.Repeat(")", 500) + " == nope", "unknown name nope", "…", ""},
		{"exit == 1 or " + strings.Repeat("exit == 1 or ", 400) + "true", "longer than", "", "script"},
		{strings.Repeat("!", 2000) + "true", "", "", "hint: "},
	}
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 30)], func(t *testing.T) {
			_, err := Condition(tt.text)
			if err == nil {
				t.Fatalf("%s: got no error, want %q", tt.text, tt.wrong)
			}
			message, hint, _ := strings.Cut(err.Error(), "\nhint: ")
			if !strings.Contains(message, tt.wrong) || !strings.Contains(message+"\n", tt.marked) ||
				!strings.Contains("hint: "+hint, tt.hint) || hint == "" {
				t.Errorf("got %v, want %q, mark %q, hint %q", err, tt.wrong, tt.marked, tt.hint)
			}
		})
	}
}

// A condition that cannot be evaluated does not match, and returns an error.
func TestConditionFailsWhenItIsEvaluated(t *testing.T) {
	for _, text := range []string{"int(stderr) > 3", "float(stderr) > 3", "int('1.5') == exit", "exit % (exit - 75) == 0",
		"len(1..100000000) > exit"} {
		c, err := Condition(text)
		if err != nil {
			t.Fatal(err)
		}
		matches, err := c.Match(evidence(nil))
		if matches || err == nil || !strings.HasPrefix(err.Error(), "cannot be evaluated: ") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, %v, want no match and an error of one line", text, matches, err)
		}
	}
}

// An error has one line, and not the whole output of the command.
func TestShortError(t *testing.T) {
	long := strings.Repeat("ü", 1<<19)
	for text, want := range map[string]string{
		"int(stdout) == 1": `cannot be evaluated: "a\nü`,
	} {
		c, err := Condition(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Match(evidence(func(e *task.Evidence) { e.Stdout, e.Stderr = "a\n"+long, "("+long }))
		if err == nil || len(err.Error()) > 250 || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %.300q, want %q and at most 250 bytes", text, err, want)
		}
	}
}

func TestConditionCaptures(t *testing.T) {
	for text, want := range map[string]task.CaptureMode{
		"exit == 1":                         task.CaptureNone,
		"exit == 1 and stderr contains 'a'": task.CaptureStderr,
		"len(trim(stdout)) > 3":             task.CaptureBoth,
		"stdout == stderr":                  task.CaptureBoth,
		"'stderr' == string(signal)":        task.CaptureNone,
	} {
		c, err := Condition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Captures(); got != want {
			t.Errorf("%s: got captures %s, want %s", text, got, want)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, seed := range []string{"exit in [1, 75]", `stderr matches "a+b" or exit > 1`, "let x = 3; x == exit",
		"1..9 == []", "header['a'] ?? '' == ''", "!(", "\xff\n\t'"} {
		f.Add(seed, 1, "text")
	}
	f.Fuzz(func(t *testing.T, text string, exit int, stderr string) {
		c, err := Condition(text)
		if err != nil {
			if !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("%q: got %q, want a hint", text, err)
			}
			return
		}
		e := evidence(func(e *task.Evidence) { e.Exit, e.Stderr = exit, stderr })
		once, err := c.Match(e)
		again, _ := c.Match(e)
		if once != again || once && err != nil {
			t.Errorf("%q: got %v and then %v, %v, want the same twice", text, once, again, err)
		}
	})
}
