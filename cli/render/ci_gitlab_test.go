package render

import (
	"regexp"
	"strings"
	"testing"
)

func gitlabIn(b *strings.Builder) Observer {
	return newGitLab(&Lines{w: b}, b)
}

// The first attempt and the last that the policy allows are open, those between are collapsed.
func TestGitLabLog(t *testing.T) {
	var b strings.Builder
	tk := fresh("01a1fb79-5735-7565-b3a1-977a5b9a39db")
	tk.Policy.Attempts = 3
	play(gitlabIn(&b), tk, func() { b.WriteString("output\n") }, failing, failing, lastOne)
	section := func(number, options string) string {
		return `\x1b\[0Ksection_start:\d{10}:retry_5b9a39db_` + number + options + `\r\x1b\[0Kretry: attempt ` + number + `/3: sh -c 'exit 7'
output
\x1b\[0Ksection_end:\d{10}:retry_5b9a39db_` + number + `\r\x1b\[0K
`
	}
	want := regexp.MustCompile("^" + section("1", "") + "retry: attempt 1/3: exit 7 after 1s; next at once\n" +
		section("2", `\[collapsed=true\]`) + "retry: attempt 2/3: exit 7 after 1s; next at once\n" +
		section("3", "") + "retry: attempt 3/3: exit 7 after 0s\nretry: gave up after 3 attempts in .*: exit 7\n$")
	if got := b.String(); !want.MatchString(got) {
		t.Errorf("got\n%q\nwant\n%s", got, want)
	}
}

// Without a limit no attempt is known to be the last, and the names differ all the same.
func TestSectionWithoutALimit(t *testing.T) {
	tk := fresh("01a1fb79-5735-7565-b3a1-977a5b9a39db")
	tk.Policy.Attempts = 0
	names := map[string]bool{}
	for tk.AttemptCount = 1; tk.AttemptCount < 100; tk.AttemptCount++ {
		name := sectionName(tk)
		if names[name] || !regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`).MatchString(name) {
			t.Errorf("name %q", name)
		}
		names[name] = true
		if open := sectionOptions(tk) == ""; open != (tk.AttemptCount == 1) {
			t.Errorf("attempt %d is open: %v", tk.AttemptCount, open)
		}
	}
}

func TestGitLabIsEscaped(t *testing.T) {
	var b strings.Builder
	tk := fresh("0123456789abcdef")
	tk.Command = []string{"x\n\x1b[0Ksection_end:1:retry_89abcdef_1\r\x1b[0K"}
	play(gitlabIn(&b), tk, func() {}, lastOne)
	if got := b.String(); strings.Count(got, "\r") != 2 || strings.Count(got, "\x1b") != 4 {
		t.Errorf("got %q", got)
	}
}
