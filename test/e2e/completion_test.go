//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// bashCompletion is where the package of that name stands. Without it, a command's own completion is not found.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// completingShells are the shells that retry completion knows, as a person has set them up.
var completingShells = []struct {
	name, rc string // the file that it reads at its start
	argv     []string
	setUp    string
	own      bool // a command to run is completed by a completion of its own
}{
	{name: "bash", rc: "rc", argv: []string{"bash", "--rcfile", "rc", "-i"}, own: true,
		setUp: ". " + bashCompletion + "\neval \"$(retry completion bash)\"\ncomplete -W 'alpha beta' my-command\n" + "PS1='" + prompt + "'\n"},
	{name: "bash alone", rc: "rc", argv: []string{"bash", "--rcfile", "rc", "-i"},
		setUp: "eval \"$(retry completion bash)\"\nPS1='" + prompt + "'\n"},
	{name: "zsh", rc: ".zshrc", argv: []string{"zsh", "-i"}, own: true,
		setUp: "autoload -U compinit; compinit -u\nsource <(retry completion zsh)\n" +
			"_my_command() { compadd alpha beta }; compdef _my_command my-command\nPS1='" + prompt + "'\n"},
	{name: "fish", rc: ".config/fish/config.fish", argv: []string{"fish", "-i"}, own: true,
		setUp: "set fish_greeting\nretry completion fish | source\ncomplete -c my-command -f -a 'alpha beta'\n" +
			"function fish_prompt; echo -n '" + prompt + "'; end\n"},
}

// completed are lines with a tab, and the arguments that retry gets when the line is entered after that. A _ is a space
// within an argument.
var completed = []struct{ typed, want string }{
	{"retry po\t", "policy"},
	{"retry policy sh\t", "policy show"},
	{"retry token r\t", "token rm"},
	{"retry --require\t", "--require-state"},
	{"retry status --fai\t", "status --failed"},
	{"retry -b lock\t", "-b lock-busy"},
	{"retry -b aw\t", "-b aws"},
	{"retry -j deco\t", "-j decorrelated"},
	{"retry --ci=githu\t", "--ci=github"},
	{"retry --ci gitl\t", "--ci gitlab"},
	{"retry --signal US\tR2", "--signal USRR2"},
	{"retry status --status waiting,inter\t", "status --status waiting,interrupted"},
	{"retry -p dep\t", "-p deploy"},
	{"retry -p nig\t", "-p nightly_build"},
	{"retry -p 'nig\t", "-p nightly_build"},
	{"retry -p \"nig\t", "-p nightly_build"},
	{"retry status pla\t", "status plain"},
	{"retry status ta\t", "status ta_b"},
	{"retry logs it\t", "logs it's"},
	{"retry status a:\t", "status a:b:c"},
	{"retry status a:b\t", "status a:b:c"},
	{"retry status \\$\t", "status $(touch_x)"},
	{"retry status \\`\t", "status `touch_y`"},
	{"retry status 'q\t", "status q\"uote"},
	{"retry status ID\t", "status WHOLE"},
	{"retry --config=fil\t", "--config=file_one"},
	{"retry -- my-comm\t", "-- my-command"},
	{"retry my-comm\t", "my-command"},
	{"retry -n 3 my-comm\t", "-n 3 my-command"},
}

// ownCompleted need the completion of the command itself.
var ownCompleted = []struct{ typed, want string }{
	{"retry -- my-command al\t", "-- my-command alpha"},
	{"retry -b exp:1s -- my-command be\t", "-b exp:1s -- my-command beta"},
	{"retry -b 1s my-command be\t", "-b 1s my-command beta"},
}

// hostileNames are names of tasks that a shell must neither run nor cut.
var hostileNames = []string{"plain", "ta b", "it's", "$(touch x)", "`touch y`", "a:b:c", "q\"uote", "new\nline", "back\\slash",
	"; touch z", "-flag", "!!", "é=x", "*"}

// TestCompletion types into the real shells. What they have made of a line is what a retry gets that only tells its
// arguments.
func TestCompletion(t *testing.T) {
	binary := buildForTerminals(t)
	for _, shell := range completingShells {
		t.Run(shell.name, func(t *testing.T) {
			findShell(t, shell.argv[0], shell.own)
			s := newConsole(t, binary)
			id := s.prepareCompletion(binary)
			rc := filepath.Join(s.dir, shell.rc)
			testkit.Must(t, os.MkdirAll(filepath.Dir(rc), 0o700))
			testkit.Must(t, os.WriteFile(rc, []byte(shell.setUp), 0o600))
			s.start(shell.argv...)
			s.expect(prompt)
			rows := completed
			if shell.own {
				rows = append(rows[:len(rows):len(rows)], ownCompleted...)
			}
			for _, row := range rows {
				typed := strings.Replace(row.typed, "ID", id[:6], 1)
				want := "got"
				for word := range strings.FieldsSeq(strings.Replace(row.want, "WHOLE", id, 1)) {
					want += "<" + strings.ReplaceAll(word, "_", " ") + ">"
				}
				s.press(typed + "\n")
				s.expect(want)
			}
			for _, name := range []string{"x", "y", "z"} {
				if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
					t.Errorf("the name of a task was run: it made the file %s", name)
				}
			}
		})
	}
}

// prepareCompletion makes a journal, a config file, a file and a command. It returns the id of a task as people see it.
func (s *console) prepareCompletion(binary string) (id string) {
	bin := filepath.Join(s.dir, "bin")
	stub := fmt.Sprintf("#!/bin/sh\ncase $1 in __complete|completion) exec '%s' \"$@\" ;; esac\n"+
		"printf got; printf '<%%s>' \"$@\"; echo\n", binary)
	testkit.Must(s, os.Mkdir(bin, 0o700))
	for file, text := range map[string]string{"bin/retry": stub, "bin/my-command": "#!/bin/sh\n", "file one": "",
		"config.toml": "[policy.deploy]\n[policy.\"nightly build\"]\n"} {
		testkit.Must(s, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o700))
	}
	for _, name := range hostileNames {
		s.output(binary, "-q", "--id", name, "--", "true")
	}
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"), "RETRY_CONFIG="+filepath.Join(s.dir, "config.toml"),
		"ZDOTDIR="+s.dir, "XDG_CONFIG_HOME="+filepath.Join(s.dir, ".config"), "INPUTRC=/dev/null", "LC_ALL=C.UTF-8")
	var shown struct{ ID string }
	testkit.Must(s, json.Unmarshal([]byte(s.output(binary, "status", "plain", "--json")), &shown))
	return shown.ID[len(shown.ID)-8:]
}

// findShell skips the test where there is no such shell, unless TEST_SHELLS=required.
func findShell(t *testing.T, name string, own bool) {
	t.Helper()
	_, err := exec.LookPath(name)
	if err == nil && name == "bash" && own {
		_, err = os.Stat(bashCompletion)
	}
	switch {
	case err != nil && os.Getenv("TEST_SHELLS") == "required":
		t.Fatalf("%v, and TEST_SHELLS=required", err)
	case err != nil:
		t.Skip(err)
	}
}
