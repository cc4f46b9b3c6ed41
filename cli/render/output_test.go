package render

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/10f93571/retry/task"
)

// wrote is an attempt with captured output.
func wrote(number int, stdout, stderr string) task.Attempt {
	return task.Attempt{Number: number, Outcome: task.Outcome{Exit: 1, Stdout: stdout, Stderr: stderr}}
}

func tailsOf(attempts ...task.Attempt) []string { return linesOf(Screen{}.tails(attempts)) }

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// What the latest attempt said is what explains how the task stands.
func TestTails(t *testing.T) {
	tests := []struct {
		name     string
		attempts []task.Attempt
		want     []string
	}{
		{"none", nil, []string{""}},
		{"nothing captured", []task.Attempt{wrote(1, "", ""), wrote(2, "", "")}, []string{""}},
		{"both", []task.Attempt{wrote(1, "out\n", "err\n")},
			[]string{"", "Stdout of attempt 1", "  out", "", "Stderr of attempt 1", "  err"}},
		{"stdout alone", []task.Attempt{wrote(1, "out", "")}, []string{"", "Stdout of attempt 1", "  out"}},
		{"stderr alone", []task.Attempt{wrote(1, "", "err")}, []string{"", "Stderr of attempt 1", "  err"}},
		{"one file", []task.Attempt{wrote(1, "a\nb\n", "a\nb\n")}, []string{"", "Output of attempt 1", "  a", "  b"}},
		{"the latest", []task.Attempt{wrote(1, "old", ""), wrote(2, "new", "")},
			[]string{"", "Stdout of attempt 2", "  new"}},
		{"the latest that said something", []task.Attempt{wrote(1, "", "old"), wrote(2, "", "")},
			[]string{"", "Stderr of attempt 1", "  old"}},
		{"ten lines", []task.Attempt{wrote(1, "", numbered(1, 10))},
			append([]string{"", "Stderr of attempt 1"}, indented(numbered(1, 10))...)},
		{"more", []task.Attempt{wrote(1, "", numbered(1, 500))},
			append([]string{"", "Stderr of attempt 1, its last 10 lines"}, indented(numbered(491, 500))...)},
		{"blank lines within", []task.Attempt{wrote(1, "a\n\nb\n", "")},
			[]string{"", "Stdout of attempt 1", "  a", "  ", "  b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tailsOf(tt.attempts...); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func indented(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, "  "+strings.TrimSuffix(line, "\n"))
	}
	return list
}

// nasty are bytes that would do something to a terminal, or to who reads it.
var nasty = []string{
	"\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x07", "\x1bP1$r\x1b\\", "\x1b", "\x9b31m", "\u009b31m",
	"\u0090x\u009c", "\r", "a\rb", "\b\b\b", "\x00", "\x07",
	"\x0e", "\x7f", "\v\f", "\t", "\xff\xfe", "\xc3", "\xed\xa0\x80", "\xf0\x9f", "\x80cut", "\u202eevil\u202c",
	"\u2066\u2069", "\u200b\u200e\ufeff", "\u2028\u2029", "\u0085",
	"\U000e0001\U000e0041", "\ufffe", "\u00ad", "\u061c", "a\u0300", "日本", "🙂",
}

// logs shows all of it, and nothing above the first title.
func TestLogs(t *testing.T) {
	tests := []struct {
		name, stdout, stderr string
		want                 []string
	}{
		{"both", "out\n", "err\n", []string{"Stdout of attempt 3", "  out", "", "Stderr of attempt 3", "  err"}},
		{"one file", "a\n", "a\n", []string{"Output of attempt 3", "  a"}},
		{"stderr alone", "", "err", []string{"Stderr of attempt 3", "  err"}},
		{"long", numbered(1, 500), "", append([]string{"Stdout of attempt 3"}, indented(numbered(1, 500))...)},
		{"tabs", "a\tbc\t\x1b\td\n\te", "", []string{"Stdout of attempt 3", `  a       bc      \x1b    d`, "          e"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := lines(t, func(b *strings.Builder) error {
				return Logs(b, Screen{}, task.KindCommand, 3, tt.stdout,
					tt.stderr)
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTailsAreEscaped(t *testing.T) {
	for _, text := range nasty {
		for _, a := range []task.Attempt{wrote(1, text, ""), wrote(1, "", "x\n"+text+"\ny\n"), wrote(1, text, text),
			wrote(1, strings.Repeat(text+"\n", 40), "x")} {
			checkDrawn(t, text, tailsOf(a))
		}
	}
	all := strings.Join(nasty, "\n")
	checkDrawn(t, all, tailsOf(wrote(1, all, all)))
}

// checkDrawn fails the test where a line is more than a terminal just draws.
func checkDrawn(t *testing.T, text string, lines []string) {
	t.Helper()
	for _, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: got %q, want it escaped", text, line)
		}
	}
}

// No output makes a line that looks like one of ours: each is indented.
func TestTailsForgeNothing(t *testing.T) {
	got := tailsOf(wrote(1, "x\n\nStderr of attempt 9\n  forged\n", ""))
	for _, line := range got[2:] {
		if !strings.HasPrefix(line, "  ") {
			t.Errorf("got %q, want it indented", line)
		}
	}
}

func FuzzTails(f *testing.F) {
	for _, text := range nasty {
		f.Add(text, text)
		f.Add(text, "x\n"+text)
	}
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		got := tailsOf(wrote(1, stdout, stderr))
		checkDrawn(t, stdout+stderr, got)
		if len(got) > 2*(tailLines+2) {
			t.Errorf("%d lines", len(got))
		}
	})
}

// A pipe that closes, as head's does, ends the report.
func TestReportsTellOfAFailingWriter(t *testing.T) {
	failure := errors.New("closed")
	attempts := []task.Attempt{wrote(1, "a\nb", "c")}
	for name, draw := range map[string]func(io.Writer) error{
		"task": func(w io.Writer) error { return Task(w, Screen{}, view(nil), attempts, now) },
		"logs": func(w io.Writer) error { return Logs(w, Screen{}, task.KindCommand, 1, "a\nb", "c") },
	} {
		if err := draw(&closing{err: failure}); !errors.Is(err, failure) {
			t.Errorf("%s: got %v, want %v", name, err, failure)
		}
		if err := draw(&closing{after: 1, err: failure}); err != nil {
			t.Errorf("%s: got %v, want one write", name, err)
		}
	}
}

// closing is a writer that fails after some writes.
type closing struct {
	after int
	err   error
}

func (f *closing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, f.err
	}
	return len(p), nil
}

func TestTailsAreBelowTheAttempts(t *testing.T) {
	got := strings.Join(lines(t, func(b *strings.Builder) error {
		return Task(b, Screen{}, view(nil), []task.Attempt{wrote(5, "", "why\n")}, now)
	}), "\n")
	if table, tail := strings.Index(got, "OUTCOME"),
		strings.Index(got, "Stderr of attempt 5\n  why"); table < 0 || tail < table {
		t.Errorf("got\n%s", got)
	}
}
