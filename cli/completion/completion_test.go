package completion

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestUnquoted(t *testing.T) {
	for _, row := range []struct {
		word, want string
		open       byte
	}{
		{word: "plain", want: "plain"},
		{word: `a\ b`, want: "a b"},
		{word: `'a\ b`, want: `a\ b`, open: '\''},
		{word: `"a\ \"b`, want: `a\ "b`, open: '"'},
		{word: `'a'"b"c\'`, want: "abc'"},
		{word: `$(touch x)`, want: "$(touch x)"},
		{word: `a\`, want: `a\`},
	} {
		if got, open := Unquoted(row.word); got != row.want || open != row.open {
			t.Errorf("%s: got %q and the quote %q, want %q and %q", row.word, got, open, row.want, row.open)
		}
	}
}

// What is put on the command line is read as the item again, whatever the item is.
func TestQuotedForBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	values := []string{"plain", "a b", "it's", "$(touch x)", "`touch y`", `q"uote`, `back\slash`, "; touch z", "a:b", "é=x", "*", "~",
		"#", "{a,b}", "!!", "<(x)", "%1", "&", "a\\"}
	for _, value := range values {
		for open, closing := range map[byte]string{0: "", '\'': "'", '"': `"`} {
			word := ""
			if open != 0 {
				word = string(open)
			}
			written := quoted(value, open)
			if open == 0 && written == "" {
				t.Errorf("%s: got nothing", value)
			}
			if written == "" {
				continue
			}
			got, err := exec.Command(bash, "-c", "printf %s "+word+written+closing).Output()
			if err != nil || string(got) != value {
				t.Errorf("%s after %q: got %s, which is %q, %v", value, word, written, got, err)
			}
			if plain, _ := Unquoted(word + written); plain != value {
				t.Errorf("%s after %q: got %s, which is read as %q", value, word, written, plain)
			}
		}
	}
}

func TestAnswerInBash(t *testing.T) {
	for _, row := range []struct {
		name, word   string
		kept, offset int
		values       []string
		want         string // with | between
	}{
		{name: "all", values: []string{"a", "b"}, want: "a|b"},
		{name: "some", word: "b", values: []string{"a", "b", "bc"}, want: "b|bc"},
		{name: "after =", word: "--ci=gi", kept: 5, offset: 5, values: []string{"auto", "github"}, want: "github"},
		{name: "not cut at =", word: "--ci=gi", offset: 5, values: []string{"auto", "github"}, want: "--ci=github"},
		{name: "after :", word: "a:b", kept: 2, values: []string{"a:b:c", "x"}, want: "b:c"},
		{name: "quoted", word: "'a", values: []string{"a b", "a'b"}, want: "a b"},
		{name: "escaped", word: `a\ `, values: []string{"a b", "ab"}, want: `a\ b`},
		{name: "a quote before the part that is replaced", word: `'a':b`, kept: 4, values: []string{"a:bc"}},
		{name: "kept too much", word: "a", kept: 9, values: []string{"ab"}, want: "b"},
	} {
		a := Answer{Kind: Values, Offset: row.offset}
		for _, value := range row.values {
			a.Items = append(a.Items, Item{Value: value})
		}
		var got []string
		for _, item := range a.inBash(row.word, row.kept).Items {
			got = append(got, item.Value)
		}
		if joined := strings.Join(got, "|"); joined != row.want {
			t.Errorf("%s: got %q, want %q", row.name, joined, row.want)
		}
	}
}

func TestReply(t *testing.T) {
	asked, err := Ask([]string{"zsh", "--", "status", "a"})
	if err != nil || !slices.Equal(asked.Words, []string{"status", "a"}) {
		t.Fatalf("got %+v, %v", asked, err)
	}
	var b strings.Builder
	long := strings.Repeat("é", maxAbout+1)
	answer := Answer{Kind: Values, Items: []Item{{"a", "One. Two."}, {"b\n", ""}, {"", ""}, {"\x1b[31m", ""}, {"c", "x\x1b[2J\n\ty"},
		{"\xff", ""}, {"d", long}}}
	if err := asked.Reply(&b, answer); err != nil {
		t.Fatal(err)
	}
	want := "values 0 0\na\tOne\nc\tx [2J  y\nd\t" + long[:2*(maxAbout-1)] + "…\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestAskRefuses(t *testing.T) {
	for _, args := range []string{"", "zsh", "zsh --", "tcsh -- x", "-- x", "bash x -- y", "bash -- x"} {
		if _, err := Ask(strings.Fields(args)); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
}

func TestScripts(t *testing.T) {
	for _, shell := range Shells() {
		if !strings.Contains(Script(shell), "command retry "+"__complete "+shell) {
			t.Errorf("%s: its script does not ask retry", shell)
		}
	}
	if Script("tcsh") != "" {
		t.Error("tcsh: got a script")
	}
}
