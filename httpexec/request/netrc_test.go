package request

import "testing"

func TestNetrc(t *testing.T) {
	n := parseNetrc(`# machine commented login no password no
machine a.example login ann password "two words\t\"x\"" account ignored
macdef init
machine in.the.macro login no password no

machine
  b.example
  login bob
  password #bob
machine b.example login eve password eve
default login any password one
`)
	for _, tt := range []struct{ host, name, want string }{
		{host: "a.example", want: "ann:two words\t\"x\""},
		{host: "A.Example", want: "ann:two words\t\"x\""},
		{host: "b.example", want: "bob:#bob"},
		{host: "b.example", name: "eve", want: "eve:eve"},
		{host: "b.example", name: "nobody", want: ""},
		{host: "commented", want: "any:one"},
		{host: "in.the.macro", want: "any:one"},
	} {
		if got := n.User(tt.host, tt.name); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.name, tt.host, got, tt.want)
		}
	}
	if got := Netrc(nil).User("a.example", ""); got != "" {
		t.Errorf("without a file: got %q, want nothing", got)
	}
}

func FuzzNetrc(f *testing.F) {
	f.Add(`machine a login "b\`)
	f.Fuzz(func(_ *testing.T, text string) { parseNetrc(text).User("a", "") })
}
