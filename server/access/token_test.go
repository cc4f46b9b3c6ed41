package access

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

func TestAdd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ci", Write)
	if !regexp.MustCompile(`^rtk_[0-9a-f]{10}_[A-Za-z0-9_-]{43}$`).MatchString(token) {
		t.Errorf("got %q, want rtk_ID_SECRET", token)
	}
	other := add(t, file, "ops.team-1", Admin)
	content := testkit.Contents(t, file)
	if strings.Contains(content, token[15:]) || !regexp.MustCompile(
		`^ci write [0-9a-f]{10} [0-9a-f]{64}\nops.team-1 admin [0-9a-f]{10} [0-9a-f]{64}\n$`).MatchString(content) {
		t.Errorf("got %q, want two lines without a secret", content)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	tokens := open(t, file)
	for token, want := range map[string]Identity{
		token:                      {Name: "ci", Scope: Write, token: tokenID(token)},
		other:                      {Name: "ops.team-1", Scope: Admin, token: tokenID(other)},
		token[:len(token)-1]:       {},
		token + "x":                {},
		strings.ToUpper(token):     {},
		token[:14] + other[14:]:    {},
		"rtk_" + tokenID(token):    {},
		"rtk__":                    {},
		"":                         {},
		"Bearer " + token:          {},
		strings.Repeat("x", 1<<20): {},
	} {
		if got, found := tokens.Find(token); got != want || found != (want.Name != "") {
			t.Errorf("%.30q: got %+v, %v, want %+v", token, got, found, want)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	add(t, file, "ci", Read)
	tests := []struct {
		name, file, owner string
		scope             Scope
		want              string
	}{
		{"name with a space", file, "a b", Read,
			"invalid token name \"a b\"\nhint: use up to 64 letters, digits, dots, dashes and underscores"},
		{"name with a line break", file, "a\nroot admin x", Read, `invalid token name "a\nroot admin x"`},
		{"no name", file, "", Read, `invalid token name ""`},
		{"comment", file, "#a", Read, `invalid token name "#a"`},
		{"the same name", file, "ci", Read, file + ` has a token named "ci"`},
		{"no scope", file, "x", None, "invalid scope 0"},
		{"a directory", dir, "x", Read, "open " + dir + ": is a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := testkit.Contents(t, file)
			token, err := Add(tt.file, tt.owner, tt.scope)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || token != "" {
				t.Errorf("got %q, %v, want %q", token, err, tt.want)
			}
			if got := testkit.Contents(t, file); got != before {
				t.Errorf("got %q, want the file unchanged", got)
			}
		})
	}
}

// Tokens that are made at the same time are all in the file, also after a line without its end.
func TestAddAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	testkit.Write(t, file, "# made by hand")
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() { add(t, file, fmt.Sprint("n", i), Read) })
	}
	wait.Wait()
	tokens := open(t, file)
	if len(tokens.byID) != 32 {
		t.Errorf("got %d tokens in %q, want 32", len(tokens.byID), testkit.Contents(t, file))
	}
}

func TestParseTokens(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	tests := []struct{ line, want string }{
		{"# a comment", ""},
		{"", ""},
		{"  ci\tread,write  0a1b  " + strings.ToUpper(hash), ""},
		{"ci write 0a1b", "want name, scopes, id and SHA-256, got 3 words"},
		{"c/i write 0a1b " + hash, `invalid token name "c/i"`},
		{"ci wirte 0a1b " + hash, "invalid scope \"wirte\"\nhint: did you mean \"write\"?"},
		{"ci x 0a1b " + hash, "invalid scope \"x\"\nhint: give read, write or admin, or several with commas between"},
		{"ci , 0a1b " + hash, "invalid scope \"\"\nhint: give read, write or admin, or several with commas between"},
		{"ci write a_b " + hash, `invalid token id "a_b"`},
		{"ci write 0a1b " + hash[1:], "the SHA-256 has not 64 hexadecimal digits"},
		{"ci write 0a1b " + hash + "00", "the SHA-256 has not 64 hexadecimal digits"},
		{"ci write ffff " + hash, "the id ffff is there twice"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			entries, err := parseTokens([]byte("first admin ffff " + hash + "\n" + tt.line + "\nlast read eeee " + hash))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if want := "line 2: " + tt.want; got != want && (tt.want != "" || got != "") {
				t.Errorf("got %q, want %q", got, want)
			}
			if len(entries) < 2 || entries[0].name != "first" || entries[len(entries)-1].name != "last" {
				t.Errorf("got %v, want the right lines", entries)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	tests := []struct {
		list string
		want Scope
	}{{"read", Read}, {"write", Write}, {"admin", Admin}, {"read,write", Write}, {"admin,read", Admin}}
	for _, tt := range tests {
		if got, err := ParseScope(tt.list); err != nil || got != tt.want {
			t.Errorf("%s: got %v, %v, want %v", tt.list, got, err, tt.want)
		}
	}
	if got := fmt.Sprint(None, Read, Write, Admin, Scope(9)); got != "none read write admin none" {
		t.Errorf("got %q", got)
	}
}

// A wrong secret, an unknown ID and what is no token at all cost one comparison each of the same length.
func TestFindComparesAlways(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ci", Write)
	tokens := open(t, file)
	var lengths []int
	tokens.same = func(a, b []byte) int {
		lengths = append(lengths, len(a), len(b))
		return subtle.ConstantTimeCompare(a, b)
	}
	for _, sent := range []string{token, token + "x", "rtk_0000000000_" + token[15:], "", "x"} {
		lengths = nil
		tokens.Find(sent)
		if len(lengths) != 2 || lengths[0] != 32 || lengths[1] != 32 {
			t.Errorf("%q: got comparisons of %v bytes, want one of 32 and 32", sent, lengths)
		}
	}
}

// The file is read again when it changes: what is added holds at once, what is removed ends at once.
func TestTokensAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	first := add(t, file, "first", Write)
	var warned []string
	tokens, err := OpenTokens(file, func(err error) { warned = append(warned, err.Error()) })
	testkit.Must(t, err)
	check := func(when, token string, want bool) {
		t.Helper()
		if _, got := tokens.Find(token); got != want {
			t.Errorf("%s: got valid %v, want %v", when, got, want)
		}
	}
	second := add(t, file, "second", Read)
	check("added", second, true)
	lines := strings.SplitAfter(testkit.Contents(t, file), "\n")
	testkit.Write(t, file, lines[1])
	check("removed", first, false)
	check("kept", second, true)

	testkit.Write(t, file, "wrong\n"+lines[0])
	check("beside a wrong line", first, true)
	check("removed beside a wrong line", second, false)
	testkit.Must(t, os.Chmod(file, 0o644))
	check("file that others may read", first, true)
	testkit.Write(t, file, lines[0]+lines[1])
	check("file that others may have written", second, false)
	check("kept, but the file has changed", first, false)
	testkit.Must(t, os.Remove(file))
	check("file removed", first, false)
	testkit.Write(t, file, lines[0])
	check("file is back", first, true)

	want := []string{
		"read tokens: " + file + ": line 1: want name, scopes, id and SHA-256, got 1 words",
		"read tokens: " + file + " has mode 0644, so that others may use it\nhint: chmod 600 " + file,
		"read tokens: open " + file + ": no such file or directory" +
			"\nhint: retry token add NAME --scope write --token-file " + file + " makes it",
	}
	if fmt.Sprintf("%q", warned) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", warned, want)
	}
}

func TestOpenTokensRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	add(t, file, "ci", Write)
	refused := func(what, want string) {
		t.Helper()
		if _, err := OpenTokens(file, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	for _, mode := range []os.FileMode{0o604, 0o640, 0o620, 0o666} {
		testkit.Must(t, os.Chmod(file, mode))
		refused(mode.String(), fmt.Sprintf("has mode %04o, so that others may use it\nhint: chmod 600 ", mode))
		if _, err := Add(file, "x", Read); err == nil {
			t.Errorf("%v: Add got no error", mode)
		}
	}
	testkit.Must(t, os.Chmod(file, 0o600))
	testkit.Write(t, file, testkit.Contents(t, file)+"wrong\n")
	refused("wrong line", "line 2: want name")
	testkit.Write(t, file, strings.Repeat("#\n", maxTokenFile))
	refused("too large", "is larger than 1048576 bytes")
	file = filepath.Join(dir, "absent")
	refused("absent", "\nhint: retry token add NAME --scope write")
	if _, err := OpenTokens(file, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}

// Whatever a file holds, no line of it panics, and what it says twice is refused.
func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("ci write 0a1b " + strings.Repeat("0", 64) + "\n#\n"))
	f.Add([]byte("a\x00b read,admin - x"))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, _ := parseTokens(content)
		seen := map[string]bool{}
		for _, e := range entries {
			if seen[e.id] || e.scope < Read || e.scope > Admin || !isTokenName(e.name) {
				t.Errorf("got %+v, want one valid entry for an id", e)
			}
			seen[e.id] = true
		}
	})
}

// Nothing but the token itself is found.
func FuzzFind(f *testing.F) {
	file := filepath.Join(f.TempDir(), "tokens")
	token := add(f, file, "ci", Write)
	tokens := open(f, file)
	f.Add(token)
	f.Add("rtk_" + tokenID(token) + "_")
	f.Fuzz(func(t *testing.T, sent string) {
		if _, found := tokens.Find(sent); found != (sent == token) {
			t.Errorf("%q: got found %v", sent, found)
		}
	})
}
