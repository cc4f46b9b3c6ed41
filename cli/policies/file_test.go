package policies

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
)

func TestPathOfTheConfigFile(t *testing.T) {
	skipWithSystemFile(t)
	given := "given.toml"
	tests := []struct {
		flag  *string
		env   string
		want  string
		named bool
	}{
		{flag: nil, env: "", want: "", named: false},
		{flag: nil, env: "HOME=/home/ann", want: "/home/ann/.config/retry/config.toml", named: false},
		{
			flag:  nil,
			env:   "HOME=/home/ann XDG_CONFIG_HOME=/etc/xdg",
			want:  "/etc/xdg/retry/config.toml",
			named: false,
		},
		{
			flag:  nil,
			env:   "HOME=/home/ann XDG_CONFIG_HOME=xdg",
			want:  "/home/ann/.config/retry/config.toml",
			named: false,
		},
		{flag: nil, env: "HOME=. XDG_CONFIG_HOME=.", want: "", named: false},
		{flag: nil, env: "APPDATA=/c/appdata", want: "/c/appdata/retry/config.toml", named: false},
		{flag: nil, env: "HOME=/home/ann RETRY_CONFIG=own.toml", want: "own.toml", named: true},
		{flag: &given, env: "HOME=/home/ann RETRY_CONFIG=own.toml", want: "given.toml", named: true},
	}
	for _, tt := range tests {
		getenv := getenvOf(strings.Fields(tt.env)...)
		if path, named := (&flags.ConfigFlag{Config: tt.flag}).Path(getenv); filepath.ToSlash(path) != tt.want ||
			named != tt.named {
			t.Errorf("%s: got %q, %v, want %q, %v", tt.env, path, named, tt.want, tt.named)
		}
	}
}

// load returns the config file of a test with this content.
func load(t *testing.T, text string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Load(&flags.ConfigFlag{Config: &path}, getenvOf(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return file, joined(file.mistakes)
}

func TestLoadWithoutAFile(t *testing.T) {
	skipWithSystemFile(t)
	none := filepath.Join(t.TempDir(), "none")
	for name, tt := range map[string]struct {
		flag *string
		env  string
		want string
	}{
		"no home":        {flag: nil, env: "", want: ""},
		"no file":        {flag: nil, env: "HOME=" + none, want: ""},
		"none of a name": {flag: &none, env: "", want: "there is no such file\nhint: "},
		"an empty name":  {flag: new(string), env: "", want: "--config is empty\nhint: "},
		"by a variable":  {flag: nil, env: "RETRY_CONFIG=" + none, want: "there is no such file\nhint: "},
	} {
		file, err := Load(&flags.ConfigFlag{Config: tt.flag}, getenvOf(tt.env), func(err error) { t.Error(err) })
		if file != nil || (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want no file and the error %q", name, file, err, tt.want)
		}
	}
}

// The default file may lie in the home of somebody else.
func TestLoadWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "retry")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.toml"), nil, 0)); err != nil {
		t.Fatal(err)
	}
	var warned error
	file, err := Load(&flags.ConfigFlag{}, getenvOf("HOME="+home), func(err error) { warned = err })
	if file != nil || err != nil || !errors.Is(warned, fs.ErrPermission) {
		t.Errorf("got %v, %v, and the warning %v, want a warning alone", file, err, warned)
	}
}

// skipWithSystemFile skips a test for which the machine must have no config file for everybody, as the packages install it.
func skipWithSystemFile(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/etc/retry/config.toml"); err == nil {
		t.Skip("this machine has /etc/retry/config.toml")
	}
}

// getenvOf looks variables up in an environment of NAME=value.
func getenvOf(environ ...string) func(string) string {
	return func(name string) string {
		for _, kv := range environ {
			if value, found := strings.CutPrefix(kv, name+"="); found {
				return value
			}
		}
		return ""
	}
}

// inFile returns the policy x of a file.
func inFile(t *testing.T, text string) (string, error) {
	t.Helper()
	file, err := load(t, text)
	if err != nil {
		return "", err
	}
	policy, mistakes := file.Policy("x")
	return render.Policy(&policy), joined(mistakes)
}

func TestAPolicyInAFile(t *testing.T) {
	tests := []struct{ text, want string }{
		{text: "", want: "x: 5 attempts, backoff exp:1s..1m, jitter phase"},
		{text: "attempts = 0", want: "x: no limit of attempts, backoff exp:1s..1m, jitter phase"},
		{text: "attempts = 0x10", want: "x: 16 attempts, backoff exp:1s..1m, jitter phase"},
		{text: `backoff = "zizq"`, want: "x: 5 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{text: "backoff = \"buckets:3\"", want: "x: 5 attempts, backoff buckets:3, jitter none"},
		{text: "jitter = \"±30%\"", want: "x: 5 attempts, backoff exp:1s..1m, jitter 30%"},
		{
			text: "timeout = 1e3\nbudget = 1_000\nreset-after = 0.5",
			want: "x: 5 attempts, backoff exp:1s..1m, jitter phase, timeout 16m40s, budget 16m40s, reset after 500ms",
		},
		{
			text: "timeout = \"1h30m\"\nbudget = \"2d\"",
			want: "x: 5 attempts, backoff exp:1s..1m, jitter phase, timeout 1h30m, budget 2d",
		},
		{text: "retry-on = 75", want: "x: 5 attempts, backoff exp:1s..1m, jitter phase, retry on 75"},
		{
			text: "retry-on = '1,2'\nstop-on = [3, \"SIGSEGV\"]\nsuccess-on = []",
			want: "x: 5 attempts, backoff exp:1s..1m, jitter phase, stop on 3, stop on SIGSEGV, retry on 1,2",
		},
		{
			text: "attempts = 3\nconsecutive = 3",
			want: "x: 3 attempts, backoff exp:1s..1m, jitter phase, 3 successes in a row",
		},
		{
			text: "[[policy.x.rule]]\nwhen = 75\nbackoff = \"aws\"",
			want: "x: 5 attempts, backoff exp:1s..1m, jitter phase, where 75: backoff exp:1s..20s, jitter full",
		},
	}
	for _, tt := range tests {
		if got, err := inFile(t, "[policy.x]\n"+tt.text); err != nil || got != tt.want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.text, got, err, tt.want)
		}
	}
}

func TestAPolicyInAFileIsRefused(t *testing.T) {
	tests := []struct{ text, want string }{
		{
			text: "attempts = 1.0",
			want: ":2: policy.x.attempts: a number with a fraction where a whole number belongs\nhint: for example attempts = 8",
		},
		{text: "attempts = [1]", want: ":2: policy.x.attempts: a list where a whole number belongs"},
		{
			text: "attempts = 2\nconsecutive = 3",
			want: ":3: policy.x.consecutive: 3 successes in a row need more than 2 attempts\nhint: ",
		},
		{
			text: "consecutive = 9",
			want: ":2: policy.x.consecutive: 9 successes in a row need more than 5 attempts\nhint: ",
		},
		{text: "attempts = 99999999999999999999", want: ":2: "},
		{text: "backoff = \"\"", want: ":2: policy.x.backoff: it is empty\nhint: "},
		{
			text: "backoff = 5",
			want: ":2: policy.x.backoff: a whole number where a text belongs\nhint: for example backoff = \"exp:2s..2m\"",
		},
		{
			text: "backoff = \"buckets:3\"\njitter = \"phase\"",
			want: `:3: policy.x.jitter: jitter "phase" does not fit backoff "buckets:3"`,
		},
		{text: "timeout = nan", want: ":2: policy.x.timeout: "},
		{text: "timeout = -0.5", want: ":2: policy.x.timeout: parse duration: \"-0.5\" is negative\nhint: "},
		{
			text: "timeout = 2026-01-02",
			want: ":2: policy.x.timeout: a date or a time where a text or a number of seconds belongs\nhint: ",
		},
		{
			text: "retry-on = {}",
			want: ":2: policy.x.retry-on: a table where a text, a number or a list of them belongs\nhint: ",
		},
		{text: "retry-on = [[1]]", want: ": policy.x.retry-on: a list where "},
		{
			text: "[[policy.x.rule]]\nwhen = 75\nbackoff = 5",
			want: ":4: policy.x.rule.backoff: a whole number where a text belongs\nhint: ",
		},
		{
			text: "[[policy.x.rule]]\nwhen = \"x = y\"\nbackoff = \"aws\"",
			want: ":3: policy.x.rule.when: condition ",
		},
		{
			text: "[[policy.x.rule]]\nwhen = 75\nbackoff = \"sidekiq\"\njitter = \"full\"",
			want: ":5: policy.x.rule.jitter: jitter \"full\" does not fit",
		},
		{
			text: "rule = [1]",
			want: ":2: policy.x.rule: a whole number where a table belongs\nhint: a rule begins with [[policy.x.rule]]",
		},
		{text: "rule = 1", want: ":2: policy.x.rule: a whole number where a list of tables belongs\nhint: "},
	}
	for _, tt := range tests {
		got, err := inFile(t, "[policy.x]\n"+tt.text)
		if err == nil || !strings.Contains(err.Error(), "c.toml"+tt.want) && !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.text, got, err, tt.want)
		}
	}
}

// Reading a file checks the keys of every policy, but no values.
func TestStructure(t *testing.T) {
	tests := []struct{ text, want string }{
		{text: "[policy.x]\n[policy.y]\nattempts = \"nope\"\n", want: ""},
		{
			text: "[policy.x]\n[policy.y]\nattmepts = 3\n",
			want: ":3: policy.y.attmepts: unknown key\nhint: did you mean attempts?",
		},
		{text: "[policy.x]\nretry_on = 3\n", want: "unknown key\nhint: did you mean retry-on?"},
		{text: "[policy.x]\nRules = 3\n", want: "unknown key\nhint: did you mean rule?"},
		{text: "[policy.x]\nzzz = 3\n", want: "unknown key\nhint: the keys of a policy are attempts, backoff, "},
		{
			text: "[policy.x]\npolicy = \"aws\"\n",
			want: "unknown key\nhint: a policy of the file begins with the built-in default",
		},
		{text: "[policy.x]\ndeadline = 3\n", want: "unknown key\nhint: write budget"},
		{text: "[policy.x]\n[Policy.y]\n", want: ":2: Policy: unknown table\nhint: did you mean [policy.NAME]?"},
		{text: "attempts = 3\n", want: ":1: attempts: unknown key\nhint: the file holds [policy.NAME] tables"},
		{
			text: "policy = 3\n",
			want: ":1: policy: a whole number where a table belongs\nhint: a policy begins with [policy.NAME]",
		},
		{text: "[[policy]]\n", want: ":1: policy: a list where a table belongs"},
		{
			text: "[[policy.x]]\n",
			want: ":1: policy.x: a list where a table belongs\nhint: a policy begins with [policy.x]",
		},
		{text: "[policy]\nx = 3\n", want: "policy.x: a whole number where a table belongs"},
		{
			text: "[policy]\ntimeout = 3\n",
			want: "policy.timeout: it belongs to no policy\nhint: put it below [policy.NAME]",
		},
	}
	for _, tt := range tests {
		_, err := load(t, tt.text)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestPolicyNames(t *testing.T) {
	for _, name := range []string{"a", "nightly build", "ünïcode", "日本", "a.b", "-x", `"`,
		strings.Repeat("x", maxPolicyName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: got %v, want no error", name, err)
		}
	}
	for _, name := range []string{"", "a/b", "a\nb", "\x1b", "a\u202eb", "\xff", "a\u00a0b", " ", " a", "a ",
		strings.Repeat("x", maxPolicyName+1)} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: got %v, want an error with a hint", name, err)
		}
	}
}

// The error lists each name once, and leaves the list of names as it was.
func TestUnknownPolicy(t *testing.T) {
	known := []string{"deploy", "aws", "deploy"}
	for range 2 {
		err := Unknown("x", known)
		if want := "unknown policy \"x\"\nhint: the policies are aws, deploy"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if got := text.Nearest("x", []string{"y"}); got != "" {
		t.Errorf("got %q, want no name near x", got)
	}
}

// Each mistake has its line and a hint, and a file without mistakes can be used.
func FuzzPolicyFile(f *testing.F) {
	for _, text := range []string{
		"[policy.x]\nattempts = 3\nretry-on = [1, 'any']\n[[policy.x.rule]]\nwhen = 75\nbackoff = 'aws'", "policy.x = {rule = [{when = 1, backoff = 'zizq', jitter = 'none'}]}",
		"[policy.x]\ntimeout = 1e300\nbudget = inf\nconsecutive = 7", "[policy]\nx = [{}]", "policy = [{}]", "[policy.x]\nrule = [[]]\njitter = 5", "[policy.x]\nbackoff = 'expr:n'",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		file, mistakes := parse("c.toml", []byte(text))
		mistakes = file.Check(mistakes)
		for _, m := range mistakes {
			if !strings.HasPrefix(m.Error(), fmt.Sprintf("c.toml:%d: ", m.Line)) || !strings.Contains(m.Error(), "\nhint: ") {
				t.Errorf("%q: got %v, want its place and a hint", text, m)
			}
		}
		if len(mistakes) > 0 {
			return
		}
		for _, name := range file.Names() {
			if policy, _ := file.Policy(name); policy.Name != name || policy.Attempts < 0 || render.Policy(&policy) == "" {
				t.Errorf("%q: got %+v, want a policy that can be used", text, policy)
			}
		}
	})
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{name: "nothing quoted", text: "[policy.x]\nbackoff = exp:1s\n", want: "c.toml:2: this is no TOML: "},
		{name: "a unit", text: "\n  t = 30s\n", want: "c.toml:2: this is no TOML: "},
		{name: "a column in characters", text: "a = 'ä' 1\n", want: "c.toml:1: this is no TOML: "},
		{name: "an open list", text: "a = [1,\n", want: "c.toml:1: this is no TOML: "},
		{name: "an open string", text: "a = \"x", want: "c.toml:1: this is no TOML: "},
		{name: "an open header", text: "[policy", want: "c.toml:1: this is no TOML: "},
		{name: "a bad date", text: "a = 1\nb = 2026-02-30\n", want: "c.toml:2: this is no TOML: "},
		{name: "a bad key", text: "ä = 1", want: "c.toml:1: this is no TOML: "},
		{
			name: "UTF-16",
			text: "\xff\xfea\x00=\x001\x00",
			want: "c.toml:1: this is no TOML: invalid character at start of key: U+00FF 'ÿ'\nhint: the file is no text in UTF-8",
		},
		{
			name: "UTF-16, the other way",
			text: "\xfe\xff\x00a",
			want: "c.toml:1: this is no TOML: invalid character at start of key: U+00FE 'þ'\nhint: the file is no text in UTF-8",
		},
		{
			name: "a NUL",
			text: "a = 1\n\x00",
			want: "c.toml:2: this is no TOML: invalid character at start of key: U+0000\nhint: the file is no text in UTF-8",
		},
		{name: "no UTF-8", text: "a = \"\xff\"", want: "c.toml:1: this is no TOML: "},
		{
			name: "a key twice",
			text: "a = 1\n  a = 2\n",
			want: "c.toml:2: this is no TOML: key a is already defined",
		},
		{
			name: "a table twice",
			text: "[x]\n[y]\n[x]\n",
			want: "c.toml:3: this is no TOML: table x already exists",
		},
		{name: "a table in a number", text: "x = 1\n[x.y]\n", want: "c.toml:2: this is no TOML: "},
		{
			name: "a number of 65 bits",
			text: "[policy.a]\nattempts = 99999999999999999999",
			want: "c.toml:2: this is no TOML: ",
		},
	}
	for _, tt := range tests {
		_, mistakes := parse("c.toml", []byte(tt.text))
		if len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].Error(), tt.want) ||
			strings.Count(mistakes[0].Error(), "\nhint: ") != 1 {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.name, mistakes, tt.want)
		}
	}
}

// A key that has no line of its own has that of its table.
func TestLines(t *testing.T) {
	const example = `# policies
[policy.deploy]
attempts = 8
 backoff  = "exp:2s..2m" # capped
retry-on = ["1,75",
  'stderr matches "x"', 7]
[[policy.deploy.rule]]
when = 'exit == 75'
[[policy.deploy.rule]]
when = "9"
["policy" . "a b" ]
timeout.x = 1.5
"inline" = { "ä" = {b = true}, c = 2026-01-02 }
'ä' = 5
`
	tests := []struct {
		key  string
		want int
	}{
		{key: "policy", want: 2},
		{key: "policy deploy", want: 2},
		{key: "policy deploy attempts", want: 3},
		{key: "policy deploy backoff", want: 4},
		{key: "policy deploy retry-on", want: 5},
		{key: "policy deploy rule", want: 7},
		{key: "policy deploy rule 0 when", want: 8},
		{key: "policy deploy rule 1", want: 9},
		{key: "policy deploy rule 1 when", want: 10},
		{key: "policy deploy rule 1 jitter", want: 9},
		{key: "policy a_b", want: 11},
		{key: "policy a_b timeout x", want: 12},
		{key: "policy a_b inline ä", want: 13},
		{key: "policy a_b ä", want: 14},
		{key: "other", want: 1},
	}
	for name, text := range map[string]string{"LF": example, "CRLF": strings.ReplaceAll(example, "\n", "\r\n"),
		"BOM": "\xef\xbb\xbf" + example} {
		f, _ := parse("c.toml", []byte(text))
		for _, tt := range tests {
			keys := strings.Fields(tt.key)
			for i := range keys {
				keys[i] = strings.ReplaceAll(keys[i], "_", " ")
			}
			if got := f.Line(keys...); got != tt.want {
				t.Errorf("%s, %s: got %v, want %v", name, tt.key, got, tt.want)
			}
		}
	}
}

// What dottedKey and quote write is read back to the same text.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a", "a b", `a"b`, `a'b"\c`, "\x1b\n\u202e\x7f", "ä\U0001F600\U000E0001", `C:\x`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ToValidUTF8(text, "\ufffd")
		var file map[string]map[string]map[string]string
		if err := toml.Unmarshal([]byte("["+dottedKey(text, "x")+"]\ny = "+quote(text)), &file); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for key, table := range file {
			got := table["x"]["y"]
			if len([]rune(key)) != len([]rune(text)) || (want == text && (key != text || got != text)) {
				t.Errorf("%q: got the key %q and the value %q, want the same text", text, key, got)
			}
		}
	})
}

// A misspelt variable is told once, with the nearest name; the environment of a command in retry is not looked at again.
func TestWarnOfVariables(t *testing.T) {
	for _, tt := range []struct{ environ, want string }{
		{"HOME=/ RETRY_ATTEMPTS=3 RETRY_STATE_DIR=/s RETRY_CONFIG= RETRYING=1 RETRY_TASK_ID=", ""},
		{"RETRY_ATEMPTS=3 RETRY_FOO=1", "unknown in the environment: RETRY_ATEMPTS, RETRY_FOO\nhint: did you mean RETRY_ATTEMPTS?"},
		{"RETRY_XYZZY=3", "unknown in the environment: RETRY_XYZZY\nhint: unset it, or give the flag itself"},
		{"RETRY_TASK_ID=1 RETRY_ATEMPTS=3", ""},
	} {
		var got []string
		WarnOfVariables(strings.Fields(tt.environ), func(err error) { got = append(got, err.Error()) })
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.environ, got, tt.want)
		}
	}
}
