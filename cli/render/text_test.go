package render

import (
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/text"
)

func TestCommand(t *testing.T) {
	tests := []struct {
		argv []string
		want string
	}{
		{[]string{"rsync", "-a", "host:/src/", "./dst"}, "rsync -a host:/src/ ./dst"},
		{[]string{"sh", "-c", "exit 7"}, "sh -c 'exit 7'"},
		{[]string{"echo", "", "it's", "$HOME", "*"}, `echo '' 'it'\''s' '$HOME' '*'`},
		{[]string{"printf", "a\nb\x1b'\\"}, `printf $'a\nb\x1b\'\\'`},
		{[]string{"x", "~", "a=b", "#"}, `x '~' a=b '#'`},
	}
	for _, tt := range tests {
		if got := Command(tt.argv); got != tt.want {
			t.Errorf("Command(%q) = %s, want %s", tt.argv, got, tt.want)
		}
	}
}

// What a table shows can be pasted into a shell: bash reads the same arguments back.
func TestCommandIsReadBackByBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to read the command back")
	}
	argv := []string{"", " ", "'", `"`, `\`, "$x", "`", "!", "a\nb", "\x01\x7f", "\xff\xfe", "\u202e", "日本", "-n", "~", "a;b", "\\x41", "'\n'"}
	script := `printf '%s\0' ` + Command(argv)
	out, err := exec.Command(bash, "-c", script).Output()
	if want := strings.Join(argv, "\x00") + "\x00"; err != nil || string(out) != want {
		t.Errorf("%s\ngot %q, %v\nwant %q", script, out, err, want)
	}
}

func TestRelative(t *testing.T) {
	tests := []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, ""}, {now, "now"}, {now.Add(400 * time.Millisecond), "now"}, {now.Add(3 * time.Minute), "in 3m"}, {now.Add(-2 * time.Hour), "2h ago"},
	}
	for _, tt := range tests {
		if got := relative(tt.t, now); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.t, got, tt.want)
		}
	}
}

func TestBeginning(t *testing.T) {
	for _, tt := range []struct{ text, want string }{{"", ""}, {"äöü", "äöü"}, {"äöüx", "äöü…"}, {"\xff\xff\xff\xff", "\xff\xff\xff…"}} {
		if got := text.Shorten(tt.text, 3); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestABriefCommandShowsThatThereIsMore(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"a", "b c"}, "a 'b c'"}, {nil, ""},
		{[]string{strings.Repeat("x", 500), "y"}, strings.Repeat("x", 400) + "…"},
		{strings.Split(strings.Repeat("x ", 499)+"x", " "), strings.Repeat("x ", 200) + "…"},
		{append(make([]string, 399), "x", "y"), strings.Repeat("'' ", 133) + "'…"},
	} {
		if got := commandUpTo(tt.argv, longText); got != tt.want {
			t.Errorf("%.40q: got %q, want %q", tt.argv, got, tt.want)
		}
	}
}

// The least duration has no opposite.
func TestTheShortestDurationIsWritten(t *testing.T) {
	if got := text.Duration(math.MinInt64); got != "-106751d23h" {
		t.Errorf("got %q", got)
	}
	if got := relative(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), now); got != "106751d23h ago" {
		t.Errorf("got %q", got)
	}
}
