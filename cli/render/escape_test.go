package render

import (
	"os/exec"
	"strings"
	"testing"
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
		t.Errorf("%s\ngave %q, %v\nwant %q", script, out, err, want)
	}
}
