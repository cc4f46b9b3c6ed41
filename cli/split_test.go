package cli

import (
	"slices"
	"strings"
	"testing"
)

func flagsOfRun(t testing.TB) flagSet {
	t.Helper()
	parser, err := testProcess().newParser("run", &runCommand{})
	if err != nil {
		t.Fatal(err)
	}
	return newFlagSet("run", parser.Model)
}

func TestSplitLine(t *testing.T) {
	tests := []struct {
		args       string // separated by spaces
		subcommand string
		flags      string
		words      string
		command    string
	}{
		{"", "run", "", "", ""},
		{"true", "run", "", "", "true"},
		{"-- true", "run", "", "", "true"},
		{"-- status --json", "run", "", "", "status --json"},
		{"-- -- x", "run", "", "", "-- x"},
		{"status --json", "status", "", "--json", ""},
		{"status -- x", "status", "", "-- x", ""},
		{"--state d status x", "status", "--state=d", "x", ""},
		{"run true", "run", "", "", "true"},
		{"run -- run", "run", "", "", "run"},
		{"run run -- run", "run", "", "", "run -- run"},
		{"run -n 3 -- x", "run", "--attempts=3", "", "x"},
		{"-n 3 run -q x", "run", "--attempts=3 --quiet", "", "x"},
		{"run status", "run", "", "", "status"},
		{"-n 3 curl -f x", "run", "--attempts=3", "", "curl -f x"},
		{"-n -1 x", "run", "--attempts=-1", "", "x"},
		{"-n3 x", "run", "--attempts=3", "", "x"},
		{"-n=3 x", "run", "--attempts=3", "", "x"},
		{"-qn3 x", "run", "--quiet --attempts=3", "", "x"},
		{"-qvn 3 x", "run", "--quiet --verbose --attempts=3", "", "x"},
		{"--attempts=3 x", "run", "--attempts=3", "", "x"},
		{"--attempts 3 x", "run", "--attempts=3", "", "x"},
		{"--nosuch 3 x", "run", "--nosuch", "", "3 x"},
		{"npm run x -- --y", "run", "", "", "npm run x -- --y"},
		{"- x", "run", "", "", "- x"},
	}
	flags := flagsOfRun(t)
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			line, err := splitLine(strings.Fields(tt.args), flags)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{line.subcommand, strings.Join(line.flags, " "), strings.Join(line.words, " "), strings.Join(line.command, " ")}
			if want := []string{tt.subcommand, tt.flags, tt.words, tt.command}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestSplitLineRefuses(t *testing.T) {
	flags := flagsOfRun(t)
	for _, args := range []string{"-n", "--attempts", "-n --", "-j -- x", "-Z x", "-qZ x", "-attempts 3"} {
		if line, err := splitLine(strings.Fields(args), flags); err == nil {
			t.Errorf("%q was accepted: %+v", args, line)
		}
	}
}

func TestPair(t *testing.T) {
	parser, err := testProcess().newParser("resume", &resumeCommand{})
	if err != nil {
		t.Fatal(err)
	}
	flags := newFlagSet("run", parser.Model)
	for words, want := range map[string]string{
		"":                     "",
		"a b":                  "a b",
		"a --max-age 2h b":     "a --max-age=2h b",
		"--max-age=2h -- -q":   "--max-age=2h -- -q",
		"--max-age -1 --all a": "--max-age=-1 --all a",
		"-qv - a":              "--quiet --verbose - a",
		"--nosuch 3 -Z":        "--nosuch 3 -Z",
	} {
		if got, err := flags.pair(strings.Fields(words)); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, %v", words, got, err)
		}
	}
	for _, words := range []string{"--max-age", "a --max-age -- b"} {
		if got, err := flags.pair(strings.Fields(words)); err == nil {
			t.Errorf("%q was accepted: %q", words, got)
		}
	}
}

// Whatever the arguments, none is lost or changed on its way to the command, and nothing panics.
func FuzzSplitLine(f *testing.F) {
	for _, seed := range []string{"-n\x003\x00--\x00true", "run\x00-q\x00x", "-", "--", "-\xff", "--=\x00a", "-n", "-né\x00x"} {
		f.Add(seed)
	}
	flags := flagsOfRun(f)
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		line, err := splitLine(args, flags)
		if err == nil && len(line.command) > 0 && !slices.Equal(line.command, args[len(args)-len(line.command):]) {
			t.Errorf("%q became %q", args, line.command)
		}
	})
}
