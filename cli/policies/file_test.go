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

func TestThePlaceOfTheConfigFile(t *testing.T) {
	given := "given.toml"
	tests := []struct {
		flag  *string
		env   string
		want  string
		named bool
	}{
		{nil, "", "", false},
		{nil, "HOME=/home/ann", "/home/ann/.config/retry/config.toml", false},
		{nil, "HOME=/home/ann XDG_CONFIG_HOME=/etc/xdg", "/etc/xdg/retry/config.toml", false},
		{nil, "HOME=/home/ann XDG_CONFIG_HOME=xdg", "/home/ann/.config/retry/config.toml", false},
		{nil, "HOME=. XDG_CONFIG_HOME=.", "", false},
		{nil, "APPDATA=/c/appdata", "/c/appdata/retry/config.toml", false},
		{nil, "HOME=/home/ann RETRY_CONFIG=own.toml", "own.toml", true},
		{&given, "HOME=/home/ann RETRY_CONFIG=own.toml", "given.toml", true},
	}
	for _, tt := range tests {
		getenv := getenvOf(strings.Fields(tt.env)...)
		if path, named := (&flags.ConfigFlag{Config: tt.flag}).Path(getenv); filepath.ToSlash(path) != tt.want || named != tt.named {
			t.Errorf("%s: %q, %v", tt.env, path, named)
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
	return Load(&flags.ConfigFlag{Config: &path}, getenvOf(), func(err error) { t.Error(err) })
}

func TestLoadWithoutAFile(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, tt := range map[string]struct {
		flag *string
		env  string
		want string
	}{
		"no home":        {nil, "", ""},
		"no file":        {nil, "HOME=" + none, ""},
		"none of a name": {&none, "", "there is no such file\nhint: "},
		"an empty name":  {new(string), "", "--config is empty\nhint: "},
		"by a variable":  {nil, "RETRY_CONFIG=" + none, "there is no such file\nhint: "},
	} {
		file, err := Load(&flags.ConfigFlag{Config: tt.flag}, getenvOf(tt.env), func(err error) { t.Error(err) })
		if file != nil || (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", name, file, err)
		}
	}
}

// A file that is no config file does not fill a cron job's mail; and what is to be typed can be.
func TestLoadSaysAFew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b.toml")
	text := ""
	for i := range mostMistakes + 3 {
		text += fmt.Sprintf("[x%d]\n", i)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(&flags.ConfigFlag{Config: &path}, getenvOf(), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "\n… and 3 more\nhint: retry policy check '"+path+"' says all of them") {
		t.Errorf("got %v", err)
	}
	if lines := strings.Count(err.Error(), ":1: ") + strings.Count(err.Error(), ":2: "); lines != mostMistakes {
		t.Errorf("%d mistakes in %v", lines, err)
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
		t.Errorf("%v, %v, warned of %v", file, err, warned)
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
		{"", "x: 5 attempts, backoff exp:1s..1m, jitter phase"},
		{"attempts = 0", "x: no limit of attempts, backoff exp:1s..1m, jitter phase"},
		{"attempts = 0x10", "x: 16 attempts, backoff exp:1s..1m, jitter phase"},
		{`backoff = "zizq"`, "x: 5 attempts, backoff poly:15s+n^4, jitter add:30s*n"},
		{"backoff = \"buckets:3\"", "x: 5 attempts, backoff buckets:3, jitter none"},
		{"jitter = \"±30%\"", "x: 5 attempts, backoff exp:1s..1m, jitter 30%"},
		{"timeout = 1e3\nbudget = 1_000\nreset-after = 0.5", "x: 5 attempts, backoff exp:1s..1m, jitter phase, timeout 16m40s, budget 16m40s, reset after 500ms"},
		{"timeout = \"1h30m\"\nbudget = \"2d\"", "x: 5 attempts, backoff exp:1s..1m, jitter phase, timeout 1h30m, budget 2d"},
		{"retry-on = 75", "x: 5 attempts, backoff exp:1s..1m, jitter phase, retry on 75"},
		{"retry-on = '1,2'\nstop-on = [3, \"SIGSEGV\"]\nsuccess-on = []", "x: 5 attempts, backoff exp:1s..1m, jitter phase, stop on 3, stop on SIGSEGV, retry on 1,2"},
		{"attempts = 3\nconsecutive = 3", "x: 3 attempts, backoff exp:1s..1m, jitter phase, 3 successes in a row"},
		{"[[policy.x.rule]]\nwhen = 75\nbackoff = \"aws\"", "x: 5 attempts, backoff exp:1s..1m, jitter phase, where 75: backoff exp:1s..20s, jitter full"},
	}
	for _, tt := range tests {
		if got, err := inFile(t, "[policy.x]\n"+tt.text); err != nil || got != tt.want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.text, got, err, tt.want)
		}
	}
}

func TestAPolicyInAFileIsRefused(t *testing.T) {
	tests := []struct{ text, want string }{
		{"attempts = 1.0", ":2:12: policy.x.attempts: a number with a fraction where a whole number belongs\nhint: for example attempts = 8"},
		{"attempts = [1]", ":2:12: policy.x.attempts: a list where a whole number belongs"},
		{"attempts = 2\nconsecutive = 3", ":3:15: policy.x.consecutive: 3 successes in a row need more than 2 attempts\nhint: "},
		{"consecutive = 9", ":2:15: policy.x.consecutive: 9 successes in a row need more than 5 attempts\nhint: "},
		{"attempts = 99999999999999999999", ":2:12: "},
		{"backoff = \"\"", ":2:11: policy.x.backoff: it is empty\nhint: "},
		{"backoff = 5", ":2:11: policy.x.backoff: a whole number where a text belongs\nhint: for example backoff = \"exp:2s..2m\""},
		{"backoff = \"buckets:3\"\njitter = \"phase\"", `:3:10: policy.x.jitter: jitter "phase" does not fit backoff "buckets:3"`},
		{"timeout = nan", ":2:11: policy.x.timeout: "},
		{"timeout = -0.5", ":2:11: policy.x.timeout: parse duration: \"-0.5\" is negative\nhint: "},
		{"timeout = 2026-01-02", ":2:11: policy.x.timeout: a date or a time where a text or a number of seconds belongs\nhint: "},
		{"retry-on = {}", ":2:12: policy.x.retry-on: a table where a text, a number or a list of them belongs\nhint: "},
		{"retry-on = [[1]]", ": policy.x.retry-on: a list where "},
		{"[[policy.x.rule]]\nwhen = 75\nbackoff = 5", ":4:11: policy.x.rule.backoff: a whole number where a text belongs\nhint: "},
		{"[[policy.x.rule]]\nwhen = \"x = y\"\nbackoff = \"aws\"", ":3:8: policy.x.rule.when: condition "},
		{"[[policy.x.rule]]\nwhen = 75\nbackoff = \"sidekiq\"\njitter = \"full\"", ":5:10: policy.x.rule.jitter: jitter \"full\" does not fit"},
		{"rule = [1]", ":2:8: policy.x.rule: a whole number where a table belongs\nhint: a rule begins with [[policy.x.rule]]"},
		{"rule = 1", ":2:1: policy.x.rule: a whole number where a list of tables belongs\nhint: "},
	}
	for _, tt := range tests {
		got, err := inFile(t, "[policy.x]\n"+tt.text)
		if err == nil || !strings.Contains(err.Error(), "c.toml"+tt.want) && !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.text, got, err, tt.want)
		}
	}
}

// One misspelt key among many is enough; a policy that nobody uses is looked at, too, but not its values.
func TestStructure(t *testing.T) {
	tests := []struct{ text, want string }{
		{"[policy.x]\n[policy.y]\nattempts = \"nope\"\n", ""},
		{"[policy.x]\n[policy.y]\nattmepts = 3\n", ":3:1: policy.y.attmepts: unknown key\nhint: did you mean attempts?"},
		{"[policy.x]\nretry_on = 3\n", "unknown key\nhint: did you mean retry-on?"},
		{"[policy.x]\nRules = 3\n", "unknown key\nhint: did you mean rule?"},
		{"[policy.x]\nzzz = 3\n", "unknown key\nhint: the keys of a policy are attempts, backoff, "},
		{"[policy.x]\npolicy = \"aws\"\n", "unknown key\nhint: a policy of the file begins with the built-in default"},
		{"[policy.x]\ndeadline = 3\n", "unknown key\nhint: write budget"},
		{"[policy.x]\n[Policy.y]\n", ":2:2: Policy: unknown table\nhint: did you mean [policy.NAME]?"},
		{"attempts = 3\n", ":1:1: attempts: unknown key\nhint: the file holds [policy.NAME] tables"},
		{"policy = 3\n", ":1:1: policy: a whole number where a table belongs\nhint: a policy begins with [policy.NAME]"},
		{"[[policy]]\n", ":1:3: policy: a list where a table belongs"},
		{"[[policy.x]]\n", ":1:10: policy.x: a list where a table belongs\nhint: a policy begins with [policy.x]"},
		{"[policy]\nx = 3\n", "policy.x: a whole number where a table belongs"},
		{"[policy]\ntimeout = 3\n", "policy.timeout: it belongs to no policy\nhint: put it below [policy.NAME]"},
	}
	for _, tt := range tests {
		_, err := load(t, tt.text)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestPolicyNames(t *testing.T) {
	for _, name := range []string{"a", "nightly build", "ünïcode", "日本", "a.b", "-x", `"`, strings.Repeat("x", maxPolicyName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a/b", "a\nb", "\x1b", "a\u202eb", "\xff", "a\u00a0b", " ", " a", "a ", strings.Repeat("x", maxPolicyName+1)} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q was accepted: %v", name, err)
		}
	}
}

// The error for a name can be made twice, and lists each name once.
func TestUnknownPolicy(t *testing.T) {
	known := []string{"deploy", "aws", "deploy"}
	for range 2 {
		err := Unknown("x", known)
		if want := "unknown policy \"x\"\nhint: the policies are aws, deploy"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if got := text.Nearest("x", []string{"y"}); got != "" {
		t.Errorf("%s is near x", got)
	}
}

// Whatever a file holds: no panic, each mistake has its place and its fix, and what has no mistake can be used.
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
			if !strings.HasPrefix(m.Error(), fmt.Sprintf("c.toml:%d:%d: ", m.Line, m.Column)) || !strings.Contains(m.Error(), "\nhint: ") {
				t.Errorf("%q: %v", text, m)
			}
		}
		if len(mistakes) > 0 {
			return
		}
		for _, name := range file.Names() {
			if policy, _ := file.Policy(name); policy.Name != name || policy.Attempts < 0 || render.Policy(&policy) == "" {
				t.Errorf("%q: %+v", text, policy)
			}
		}
	})
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing quoted", "[policy.x]\nbackoff = exp:1s\n", "c.toml:2:11: this is no TOML: "},
		{"a unit", "\n  t = 30s\n", "c.toml:2:9: this is no TOML: "},
		{"a column in characters", "a = 'ä' 1\n", "c.toml:1:9: this is no TOML: "},
		{"an open list", "a = [1,\n", "c.toml:1:8: this is no TOML: "},
		{"an open string", "a = \"x", "c.toml:1:6: this is no TOML: "},
		{"an open header", "[policy", "c.toml:1:7: this is no TOML: "},
		{"a bad date", "a = 1\nb = 2026-02-30\n", "c.toml:2:13: this is no TOML: "},
		{"a bad key", "ä = 1", "c.toml:1:1: this is no TOML: "},
		{"UTF-16", "\xff\xfea\x00=\x001\x00", "c.toml:1:4: the file is no text in UTF-8"},
		{"UTF-16, the other way", "\xfe\xff\x00a", "c.toml:1:3: the file is no text in UTF-8"},
		{"a NUL", "a = 1\n\x00", "c.toml:2:1: the file is no text in UTF-8"},
		{"no UTF-8", "a = \"\xff\"", "c.toml:1:6: this is no TOML: "},
		{"a key twice", "a = 1\n  a = 2\n", "c.toml:2:3: this is no TOML: key a is already defined"},
		{"a table twice", "[x]\n[y]\n[x]\n", "c.toml:3:2: this is no TOML: table x already exists"},
		{"a table in a number", "x = 1\n[x.y]\n", "c.toml:2:2: this is no TOML: "},
		{"a number of 65 bits", "[policy.a]\nattempts = 99999999999999999999", "c.toml:2:12: this is no TOML: "},
	}
	for _, tt := range tests {
		_, mistakes := parse("c.toml", []byte(tt.text))
		if len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].Error(), tt.want) || strings.Count(mistakes[0].Error(), "\nhint: ") != 1 {
			t.Errorf("%s: got %v\nwant %s", tt.name, mistakes, tt.want)
		}
	}
}

// A key is found where it stands; one that no line of its own holds is where its table is.
func TestPlaces(t *testing.T) {
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
		want place
	}{
		{"policy", place{2, 2, 2}},
		{"policy deploy", place{2, 9, 9}},
		{"policy deploy attempts", place{3, 1, 12}},
		{"policy deploy backoff", place{4, 2, 13}},
		{"policy deploy retry-on", place{5, 1, 12}},
		{"policy deploy rule", place{7, 17, 17}},
		{"policy deploy rule 0 when", place{8, 1, 8}},
		{"policy deploy rule 1", place{9, 17, 17}},
		{"policy deploy rule 1 when", place{10, 1, 8}},
		{"policy deploy rule 1 jitter", place{9, 17, 17}},
		{"policy a_b", place{11, 13, 13}},
		{"policy a_b timeout x", place{12, 9, 13}},
		{"policy a_b inline ä", place{13, 1, 12}},
		{"policy a_b ä", place{14, 1, 7}},
		{"other", place{1, 1, 1}},
	}
	for name, text := range map[string]string{"LF": example, "CRLF": strings.ReplaceAll(example, "\n", "\r\n"), "BOM": "\xef\xbb\xbf" + example} {
		f, _ := parse("c.toml", []byte(text))
		for _, tt := range tests {
			keys := strings.Fields(tt.key)
			for i := range keys {
				keys[i] = strings.ReplaceAll(keys[i], "_", " ")
			}
			if got := f.find(keys...); got != tt.want {
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
				t.Errorf("%q became %q and %q", text, key, got)
			}
		}
	})
}
