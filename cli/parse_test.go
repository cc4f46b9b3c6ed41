package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/10f93571/retry/cli/completion"
	"github.com/10f93571/retry/cli/syntax"
)

// newTestParser makes the parser of a command.
func newTestParser(t testing.TB, name string, c command) *syntax.Parser {
	t.Helper()
	p, err := testProcess().newParser(name, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parseRun fills run's flags from arguments that are followed by the command to run.
func parseRun(t *testing.T, args ...string) (*runCommand, error) {
	t.Helper()
	c := &runCommand{}
	p := newTestParser(t, "run", c)
	line, err := splitLine(append(args, "--", "x"), func() (*syntax.Parser, error) { return p, nil })
	if err == nil {
		_, err = p.Parse(line.flags, line.words)
	}
	return c, err
}

func TestSplitLine(t *testing.T) {
	tests := []struct {
		args    string // separated by spaces
		name    string
		flags   string
		words   string
		command string
	}{
		{args: "", name: "run"},
		{args: "true", name: "run", command: "true"},
		{args: "-- true", name: "run", command: "true"},
		{args: "-- status --json", name: "run", command: "status --json"},
		{args: "-- -- x", name: "run", command: "-- x"},
		{args: "status --json", name: "status", words: "--json"},
		{args: "status -- x", name: "status", words: "-- x"},
		{args: "--state d status x", name: "status", flags: "--state=d", words: "x"},
		{args: "policy list --json", name: "policy list", words: "--json"},
		{args: "policy nope", name: "policy", words: "nope"},
		{args: "list policy", name: "run", command: "list policy"},
		{args: "run true", name: "run", command: "true"},
		{args: "run -- run", name: "run", command: "run"},
		{args: "run run -- run", name: "run", command: "run -- run"},
		{args: "run -n 3 -- x", name: "run", flags: "--attempts=3", command: "x"},
		{args: "-n 3 run -q x", name: "run", flags: "--attempts=3 --quiet", command: "x"},
		{args: "run status", name: "run", command: "status"},
		{args: "-n 3 curl -f x", name: "run", flags: "--attempts=3", command: "curl -f x"},
		{args: "-n -1 x", name: "run", flags: "--attempts=-1", command: "x"},
		{args: "-n3 x", name: "run", flags: "--attempts=3", command: "x"},
		{args: "-n=3 x", name: "run", flags: "--attempts=3", command: "x"},
		{args: "-qn3 x", name: "run", flags: "--quiet --attempts=3", command: "x"},
		{args: "-qvn 3 x", name: "run", flags: "--quiet --verbose --attempts=3", command: "x"},
		{args: "--attempts=3 x", name: "run", flags: "--attempts=3", command: "x"},
		{args: "--attempts 3 x", name: "run", flags: "--attempts=3", command: "x"},
		{args: "-attempts 3 x", name: "run", flags: "--attempts=3", command: "x"},
		{args: "npm run x -- --y", name: "run", command: "npm run x -- --y"},
		{args: "- x", name: "run", command: "- x"},
	}
	runParser := newTestParser(t, "run", &runCommand{})
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			line, err := splitLine(strings.Fields(tt.args), func() (*syntax.Parser, error) { return runParser, nil })
			if err != nil {
				t.Fatal(err)
			}
			got := []string{line.name, strings.Join(line.flags, " "), strings.Join(line.words, " "), strings.Join(line.command, " ")}
			if want := []string{tt.name, tt.flags, tt.words, tt.command}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestSplitLineRefuses(t *testing.T) {
	runParser := newTestParser(t, "run", &runCommand{})
	for _, args := range []string{"-n", "--attempts", "-n --", "-j -- x", "-Z x", "-qZ x", "--nosuch 3 x"} {
		if line, err := splitLine(strings.Fields(args), func() (*syntax.Parser, error) { return runParser, nil }); err == nil {
			t.Errorf("%q: got %+v, want an error", args, line)
		}
	}
}

// A run without flags gets the defaults without a parser.
func TestParseOfARun(t *testing.T) {
	p := testProcess()
	p.Args = []string{"true", "-n", "3"}
	got, err := p.parse()
	want := &runCommand{}
	if _, err := newTestParser(t, "run", want).Parse(nil, nil); err != nil {
		t.Fatal(err)
	}
	want.Command = p.Args
	if err != nil || !reflect.DeepEqual(got, command(want)) {
		t.Errorf("without flags: got %+v, %v, want the defaults of the parser, %+v", got, err, want)
	}
	p.Args = []string{"-vn", "3", "--capture", "both", "true"}
	got, err = p.parse()
	if c, ok := got.(*runCommand); err != nil || !ok || *c.Attempts != 3 || !c.Verbose || c.Capture != "both" || c.Output != "stream" ||
		!slices.Equal(c.Command, []string{"true"}) {
		t.Errorf("with flags: got %+v, %v", got, err)
	}
}

func TestPair(t *testing.T) {
	p := newTestParser(t, "resume", &resumeCommand{})
	for words, want := range map[string]string{
		"":                     "",
		"a b":                  "a b",
		"a --max-age 2h b":     "a --max-age=2h b",
		"--max-age=2h -- -q":   "--max-age=2h -- -q",
		"--max-age -1 --all a": "--max-age=-1 --all a",
		"-qv - a":              "--quiet --verbose - a",
	} {
		if got, err := p.Pair(strings.Fields(words)); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, %v, want %q", words, got, err, want)
		}
	}
	for _, words := range []string{"--max-age", "a --max-age -- b", "--nosuch 3", "-Z"} {
		if got, err := p.Pair(strings.Fields(words)); err == nil {
			t.Errorf("%q: got %q, want an error", words, got)
		}
	}
}

// Whatever the arguments, none is lost or changed on its way to the command, and nothing panics.
func FuzzSplitLine(f *testing.F) {
	for _, seed := range []string{"-n\x003\x00--\x00true", "run\x00-q\x00x", "-", "--", "-\xff", "--=\x00a", "-n", "-né\x00x"} {
		f.Add(seed)
	}
	runParser := newTestParser(f, "run", &runCommand{})
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		line, err := splitLine(args, func() (*syntax.Parser, error) { return runParser, nil })
		if err == nil && len(line.command) > 0 && !slices.Equal(line.command, args[len(args)-len(line.command):]) {
			t.Errorf("%q: got %q, want the last arguments", args, line.command)
		}
	})
}

// Every command and every flag has a help text, and the help of retry itself names all commands.
func TestHelpIsWhole(t *testing.T) {
	for _, c := range commands {
		if !strings.Contains(c.usage, "\nUsage:\n  retry ") {
			t.Errorf("%s: got the usage %q", c.name, c.usage)
		}
		if !strings.Contains(c.usage, "\nExample") {
			t.Errorf("%s: its help has no example", c.name)
		}
		if word, _, _ := strings.Cut(c.name, " "); word != "run" && !strings.Contains(runUsage, " retry "+word+" ") &&
			!strings.Contains(runUsage, " retry "+word+"\n") {
			t.Errorf("retry --help does not name %s", word)
		}
		p := newTestParser(t, c.name, c.make())
		for _, f := range p.Model.Flags {
			if f.Help == "" && !f.Hidden {
				t.Errorf("%s: --%s has no help", c.name, f.Name)
			}
			if !f.IsBool() && f.PlaceHolder == "" {
				t.Errorf("%s: --%s has no placeholder", c.name, f.Name)
			}
		}
	}
	for flag := range httpHelp {
		if newTestParser(t, "http", &httpCommand{}).Flag(flag) == nil {
			t.Errorf("http: there is no flag --%s to help with", flag)
		}
	}
}

func TestOtherWordsAreNoCommandsOfOurs(t *testing.T) {
	for _, word := range []string{"", "true", "list", "policy ", "Status"} {
		if newCommand(word) != nil {
			t.Errorf("%q: got a command of ours, want one to run", word)
		}
	}
}

// What people type first who know ps, tail or docker either works, as the flag in want, or is told what to write.
func TestHabitsOfReports(t *testing.T) {
	for _, tt := range []struct{ command, line, want string }{
		{"status", "-n 3", "--limit=3"},
		{"status", "-n3", "--limit=3"},
		{"status", "--lines=3", "--limit=3"},
		{"status", "--all", "--limit=0"},
		{"status", "-a", "--limit=0"},
		{"status", "--running", "--live"},
		{"status", "-w x", "--watch x"},
		{"status", "--follow x", "--watch x"},
		{"status", "--name x", "--id=x"},
		{"status", "-f", "unknown flag -f\nhint: --failed lists what failed for good; --watch draws it again"},
		{"status", "-s", "unknown flag -s\nhint: retry status --help"},
		{"logs", "-f x", "unknown flag -f\nhint: retry status --watch TASK follows a run"},
		{"logs", "--tail x", "unknown flag --tail\nhint: leave it out: the end is all that is kept"},
		{"logs", "-n 5 x", "unknown flag -n\nhint: leave it out: the end is all that is kept"},
	} {
		paired, err := newTestParser(t, tt.command, newCommand(tt.command)).Pair(strings.Fields(tt.line))
		got := strings.Join(paired, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s %s: got %q, want %q", tt.command, tt.line, got, tt.want)
		}
	}
}

// What Tab offers, in words: the kind, how much of the word stays, the first word of a command, and some of the items.
func TestAnswer(t *testing.T) {
	for _, row := range []struct {
		typed        string // words with blanks between; the last may be empty
		want         completion.Kind
		offset       int
		first        int
		has, hasNone string // items, with blanks between
	}{
		{typed: "", want: completion.Values, has: "run status policy completion"},
		{typed: "po", want: completion.Values, has: "policy", hasNone: "status"},
		{typed: "ls", want: completion.Command, hasNone: "status"},
		{typed: "-- po", want: completion.Command, first: 1, hasNone: "policy"},
		{typed: "-n 3 -q ls -l ", want: completion.Command, first: 3},
		{typed: "run status x", want: completion.Command, first: 1},
		{typed: "run po", want: completion.Command, first: 1, hasNone: "policy"},
		{typed: "-", want: completion.Values, has: "-n --attempts --help-all"},
		{typed: "--att", want: completion.Values, has: "--attempts"},
		{typed: "-q", want: completion.Values, has: "-q", hasNone: "--quiet"},
		{typed: "-Z", want: completion.Values, hasNone: "-Z"},
		{typed: "-b ", want: completion.Values, has: "exp poly: lock-busy aws"},
		{typed: "-b exp:", want: completion.Values, has: "exp:1s*2..30s"},
		{typed: "-qbex", want: completion.Values, offset: 3, has: "exp"},
		{typed: "--delay ex", want: completion.Values, has: "exp"}, // another tool's name of --backoff
		{typed: "-j ", want: completion.Values, has: "phase full 30% add:"},
		{typed: "--ci=", want: completion.Values, offset: 5, has: "auto github none"},
		{typed: "--quiet=", want: completion.Values, offset: 8, has: "true false"},
		{typed: "--signal ", want: completion.Values, has: "INT USR1", hasNone: "SIGINT"},
		{typed: "--config ", want: completion.Files},
		{typed: "--state=", want: completion.Directories, offset: 8},
		{typed: "-p ", want: completion.Values, has: "default sidekiq"},
		{typed: "-c ", want: completion.Values},
		{typed: "--nosuch -b ", want: completion.Values, has: "exp"},
		{typed: "policy ", want: completion.Values, has: "list show set rm check schema"},
		{typed: "policy x ", want: completion.Values, hasNone: "list"},
		{typed: "policy show ", want: completion.Values, has: "default"},
		{typed: "policy check ", want: completion.Files},
		{typed: "token ", want: completion.Values, has: "add list rm"},
		{typed: "token add --scope ", want: completion.Values, has: "read write admin"},
		{typed: "completion ", want: completion.Values, has: "bash zsh fish"},
		{typed: "completion bash ", want: completion.Values, hasNone: "zsh"},
		{typed: "status --status running,", want: completion.Values, offset: 8, has: "interrupted gave-up"},
		{typed: "status -- -", want: completion.Values, hasNone: "--json"},
		{typed: "--state=d status --js", want: completion.Values, has: "--json"},
		{typed: "wait ", want: completion.Files},
		{typed: "wait --gone x y", want: completion.Files},
		{typed: "http -d @", want: completion.Files, offset: 1},
		{typed: "http -F part=@", want: completion.Files, offset: 6},
		{typed: "http --jso", want: completion.Values, has: "--json --header", hasNone: "--shell"},
		{typed: "serve --listen ", want: completion.Values, has: "unix:"},
		{typed: "serve --listen unix:", want: completion.Files, offset: 5},
		{typed: "worker --drain=", want: completion.Values, offset: 8, has: "due all"},
		{typed: "plot exp:1s/", want: completion.Values, offset: 7, has: "full"},
		{typed: "plot --attempts 3 ", want: completion.Values, has: "exp sidekiq"},
		{typed: "simulate ", want: completion.Values, has: "lock outage"},
		{typed: "add ", want: completion.Values, has: "http grpc"},
		{typed: "add --in 5m ls ", want: completion.Command, first: 3},
		{typed: "add -X POST http --js", want: completion.Values, has: "--json --in"},
		{typed: "add http --in 5m --cap", want: completion.Values, has: "--capture"},
		{typed: "add -- http ", want: completion.Command, first: 2},
	} {
		a := testProcess().answer(strings.Split(row.typed, " "))
		if a.Kind != row.want || a.Offset != row.offset || a.First != row.first {
			t.Errorf("%q: got %s %d %d, want %s %d %d", row.typed, a.Kind, a.Offset, a.First, row.want, row.offset, row.first)
		}
		has := func(value string) bool {
			return slices.ContainsFunc(a.Items, func(item completion.Item) bool { return item.Value == value })
		}
		for value := range strings.FieldsSeq(row.has) {
			if !has(value) {
				t.Errorf("%q: got %v, want also %s", row.typed, a.Items, value)
			}
		}
		for value := range strings.FieldsSeq(row.hasNone) {
			if has(value) {
				t.Errorf("%q: got %v, want no %s", row.typed, a.Items, value)
			}
		}
	}
}

// Each flag with a value that it takes, and two beside it. In a bubble of synctest a deadline in 1s is the same for
// all.
func TestParseFewIsParse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range newTestParser(t, "run", &runCommand{}).Model.Flags {
			if f.Name == "help" {
				continue
			}
			values := []string{
				"1", "1s", "constant:1s", "null", "fail", "auto", "text", "final", "both", "TERM", "https://example.org", "A=b",
			}
			if f.IsBool() {
				values = []string{"true", "false"}
			}
			taken := slices.ContainsFunc(values, func(value string) bool {
				return parsesAlike(t, "--"+f.Name+"="+value, "--hook-timeout", "3s", "-vB3m", "--", "x", "-n", "1")
			})
			if !taken {
				t.Errorf("parse --%s: got an error for each of %q, want none for one of them", f.Name, values)
			}
		}
	})
}

func TestParseFewLeavesTheRest(t *testing.T) {
	lines := []string{"--help", "-q --help-al x", "-n", "-n x -- y", "--delay=1 x", "status -q", "-q http URL", "-nq"}
	for _, line := range lines {
		p := testProcess()
		if p.Args = strings.Fields(line); p.parseFew() != nil {
			t.Errorf("parseFew of %q: got a run, want nil", line)
		}
	}
}

// parsesAlike compares parseFew with the whole model, and reports whether that takes the arguments.
func parsesAlike(t *testing.T, args ...string) (taken bool) {
	t.Helper()
	p, want := testProcess(), &runCommand{}
	parser := newTestParser(t, "run", want)
	line, err := splitLine(args, func() (*syntax.Parser, error) { return parser, nil })
	if err == nil {
		_, err = parser.Parse(line.flags, line.words)
	}
	want.Command = line.command
	p.Args = args
	got := p.parseFew()
	switch {
	case err != nil && got != nil:
		t.Errorf("parseFew of %q: got %+v, want nil for: %v", args, got, err)
	case err == nil && !reflect.DeepEqual(got, want):
		t.Errorf("parseFew of %q: got %+v, want %+v", args, got, want)
	case err == nil && !slices.Equal(p.Typed, parser.Typed):
		t.Errorf("parseFew of %q: got the flags %q, want %q", args, p.Typed, parser.Typed)
	}
	return err == nil
}
