package ci

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

// summaryOf returns the step summary that a run leaves, and what it prints.
func summaryOf(t *testing.T, tk *task.Task, attempts ...task.Attempt) (page, printed string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "summary")
	var b strings.Builder
	play(NewGitHub(&b, false, path), tk, func() {}, attempts...)
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data), b.String()
}

func TestStepSummary(t *testing.T) {
	abroad, last := failing, lastOne
	abroad.StartedAt = time.Date(2026, 3, 4, 1, 30, 0, 5e8, time.FixedZone("CET", 3600))
	last.StartedAt = abroad.StartedAt
	page, _ := summaryOf(t, fresh("0123456789abcdef"), abroad, last)
	want := regexp.MustCompile("^\n### `sh -c 'exit 7'`: gave up after 2 attempts in .*: exit 7\n" + regexp.QuoteMeta(`
| Attempt | Started | Took | Outcome | Then |
|--:|---|--:|---|---|
| 1 | 2026-03-04T00:30:00Z | 1s | exit 7 | retry after 0s |
| 2 | 2026-03-04T00:30:00Z | 0s | exit 7 | gave up |
`) + "$")
	if !want.MatchString(page) {
		t.Errorf("got\n%s\nwant\n%s", page, want)
	}
}

func TestStepSummaryOf(t *testing.T) {
	tests := []struct {
		name     string
		attempts []task.Attempt
		want     string
	}{
		{"a success at once", []task.Attempt{success}, ""},
		{"a rescue", []task.Attempt{failing, success}, "succeeded in attempt 2"},
		{"a single failure", []task.Attempt{lastOne}, "gave up after 1 attempt in"},
		{"an interrupted one", []task.Attempt{cutShort}, "interrupted by SIGTERM"},
	}
	for _, tt := range tests {
		page, _ := summaryOf(t, fresh("0123456789abcdef"), tt.attempts...)
		if !strings.Contains(page, tt.want) || (tt.want == "") != (page == "") {
			t.Errorf("%s: got %q, want %q", tt.name, page, tt.want)
		}
	}
}

// A run that was stopped before its first attempt has a heading and no table.
func TestStepSummaryWithoutAttempts(t *testing.T) {
	page, _ := summaryOf(t, fresh("0123456789abcdef"))
	if !strings.HasPrefix(page, "\n### ") || strings.Contains(page, "|") {
		t.Errorf("got %q", page)
	}
}

// Of many attempts the first and the last are kept, in memory too.
func TestStepSummaryIsBounded(t *testing.T) {
	for _, n := range []int{2*keptAtEachEnd - 1, 2 * keptAtEachEnd, 2*keptAtEachEnd + 1, 10_000} {
		kept := &attemptRows{}
		for i := range n {
			kept.add(row(task.Attempt{Number: i + 1}))
		}
		leftOut := max(0, n-2*keptAtEachEnd)
		if len(kept.first)+len(kept.last) != n-leftOut || kept.leftOut != leftOut ||
			cap(kept.first)+cap(kept.last) > 6*keptAtEachEnd {
			t.Errorf("of %d attempts: got %d and %d kept, %d left out", n, len(kept.first), len(kept.last), kept.leftOut)
		}
		page := taskSummary(fresh("x"), "result", kept)
		for _, number := range []int{1, min(n, keptAtEachEnd), n - keptAtEachEnd + 2, n} {
			if !strings.Contains(page, fmt.Sprintf("\n| %d | ", number)) {
				t.Errorf("of %d attempts: want a row of %d", n, number)
			}
		}
		if got := strings.Contains(page, " left out "); got != (leftOut > 0) {
			t.Errorf("of %d attempts some are said to be left out: %v", n, got)
		}
	}
	kept := &attemptRows{}
	for range 1050 {
		kept.add(row(failing))
	}
	if row := "\n| … | | | 1000 attempts left out | |\n"; !strings.Contains(taskSummary(fresh("x"), "result", kept), row) {
		t.Errorf("got no row %q", row)
	}
}

var hostile = []string{
	"a|b", `a\|b`, `\`, "`", "``` |", "x\n| 9 | forged | | | |", "</td><script>", "&#124;", "**bold**_x_~~y~~",
	"![x](https://example.org)",
	"[x]: https://example.org", "# x", "<!--", "$x$", "@team #1", "\x1b[2J", "\u202e", "www.example.org",
	strings.Repeat("|", 5000),
}

// No command line and no message breaks out of its place: a heading, then rows of six pipes each.
func TestStepSummaryIsEscaped(t *testing.T) {
	row := regexp.MustCompile("^\\| [^|`<>\\\\*\\[\\]@]*( \\| [^|`<>\\\\*\\[\\]@]*){4} \\|$")
	for _, text := range hostile {
		tk := fresh("0123456789abcdef")
		tk.Command = []string{text, text}
		page, _ := summaryOf(t, tk, task.Attempt{
			StartedAt: noon, Outcome: task.Outcome{Error: task.ErrorNotFound, Message: text},
			Decision: task.Decision{Verdict: task.VerdictExhausted},
		})
		rows := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
		if len(rows) != 6 || len(page) > 10_000 || !row.MatchString(rows[5]) {
			t.Errorf("%q: got\n%s", text, page)
			continue
		}
		span := codeSpan(shortened(render.Command(tk.Command)))
		fence := span[:len(span)-len(strings.TrimLeft(span, "`"))]
		if !strings.HasPrefix(rows[1], "### "+span+": ") || strings.Count(span, fence) != 2 {
			t.Errorf("%q: got the heading %s", text, rows[1])
		}
		if outside := rows[1][len("### "+span):]; strings.ContainsAny(outside, "`<>|\\*[]@") {
			t.Errorf("%q: got the result %s", text, outside)
		}
		if strings.ContainsAny(page, "\x1b\u202e") {
			t.Errorf("got %q, want it escaped", page)
		}
	}
}

// Several runs write a chapter each, with their own attempts.
func TestStepSummaryOfSeveral(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	var b strings.Builder
	page := &stepSummary{Observer: render.NewLines(&b, nil, false), path: path, attempts: map[string]*attemptRows{}}
	o := render.Shared(page)
	one, two := fresh("aaaaaaaa"), fresh("bbbbbbbb")
	one.AttemptCount, two.AttemptCount = 1, 1
	o.Ended(one, failing)
	o.Ended(two, failing)
	play(o, one, func() {}, lastOne)
	play(o, two, func() {}, failing, success)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	chapters := strings.Split(string(data), "### ")
	if len(chapters) != 3 || strings.Count(chapters[1], "\n|") != 4 || strings.Count(chapters[2], "\n|") != 5 {
		t.Errorf("got\n%s", data)
	}
	if len(page.attempts) > 0 {
		t.Errorf("got %d tasks that have ended, want none kept", len(page.attempts))
	}
}

// A page that cannot be written is one warning.
func TestStepSummaryFails(t *testing.T) {
	var b strings.Builder
	path := filepath.Join(t.TempDir(), "absent", "summary")
	play(NewGitHub(&b, false, path), fresh("0123456789abcdef"), func() {}, lastOne)
	if got := b.String(); strings.Count(got, "::warning title=retry::write the step summary: open ") != 1 ||
		!strings.Contains(got, "::error") {
		t.Errorf("got\n%s", got)
	}
}
