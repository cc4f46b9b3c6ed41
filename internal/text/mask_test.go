package text

import (
	"slices"
	"strings"
	"testing"
)

func TestMaskCommand(t *testing.T) {
	for _, tt := range []struct{ argv, want string }{
		{"deploy|--password|hunter2|--host|h", "deploy|--password|***|--host|h"},
		{"deploy|--token=hunter2|x", "deploy|--token=***|x"},
		{"deploy|--token=two words", "deploy|--token=***"},
		{"deploy|-client-secret|hunter2", "deploy|-client-secret|***"},
		{"deploy|--DB-Pass|hunter2", "deploy|--DB-Pass|***"},
		{"deploy|--password|--host|h", "deploy|--password|--host|h"}, // it asks for the password
		{"psql|--no-password|db", "psql|--no-password|db"},
		{"git|clone|https://me:hunter2@example.org/x", "git|clone|https://me:***@example.org/x"},
		{"git|clone|https://me:hun@ter2@example.org/x", "git|clone|https://me:***@example.org/x"},
		{"curl|https://example.org/?a=1&access_token=hunter2&b=2", "curl|https://example.org/?a=1&access_token=***&b=2"},
		{"curl|-H|Authorization: Bearer hunter2", "curl|-H|Authorization: Bearer ***"},
		{"curl|-H|X-Api-Key: hunter2", "curl|-H|X-Api-Key: ***"},
		{"env|PGPASSWORD=hunter2|psql", "env|PGPASSWORD=***|psql"},
		{"sh|-c|mysql --password hunter2 db | wc; TOKEN='hunter 2' x -y", "sh|-c|mysql --password *** db | wc; TOKEN=*** x -y"},
		{"sh|-c|curl -H 'Authorization: token hunter2' http://h/", "sh|-c|curl -H 'Authorization: token ***' http://h/"},
		{"sh|-c|psql --no-password db", "sh|-c|psql --no-password db"},
		{"app|key-1234|x", "app|***|x"}, // by the pattern below
		{"rsync|--bypass|x|http://h:80/a@b|--max-tokens|5|--token-file|f", "rsync|--bypass|x|http://h:80/a@b|--max-tokens|5|--token-file|f"},
	} {
		got := MaskCommand(strings.Split(tt.argv, "|"), `(?:key-\d+)|(?:9*)`)
		if strings.Contains(tt.argv, " | ") { // the shell's own
			got = []string{strings.Join(got, "|")}
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	argv := []string{"x", "--token", "hunter2"}
	if MaskCommand(argv, ""); !slices.Equal(argv, []string{"x", "--token", "hunter2"}) {
		t.Errorf("got %q, want the vector as it was: the command is run with it", argv)
	}
}
