//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// session is an interactive session at a console, with retry before the commands or without it.
type session struct {
	*console
	prefix string
}

// transcript is the result of a session.
type transcript struct {
	screen string // what the terminal showed
	log    string // what the commands wrote about themselves
}

// step is what is typed, and the texts that then appear on the screen, in this order.
type step []string

// sessions run in an interactive bash. RETRY in what is typed is replaced by the prefix, or by nothing.
var sessions = map[string]struct {
	prefix string // what replaces RETRY; empty for "retry -- "
	needs  string // a program that some machines lack
	steps  []step // at the prompt of a shell
	run    func(*session)
}{
	"a yes/no prompt": {steps: []step{
		{"RETRY ./sure\n", "sure? "},
		{"no\n", "<no>", "sure? "},
		{"\n", "<>", "sure? "},
		{"two words\n", "<two words>", "sure? "},
		{"yes\n", "<yes>", prompt},
		status("0 0"),
	}},
	"a prompt for each line": {steps: []step{
		{"seq 2 | while read -r n; do RETRY ./sure </dev/tty; done\n", "sure? "},
		{"yes\n", "<yes>", "sure? "},
		{"yes\n", "<yes>", prompt},
		status("0 0 0"),
	}},
	"a password": {steps: []step{
		{"RETRY ./password\n", "password? "},
		{"secret\n", "<6 letters>", prompt},
		status("0 0"),
	}},
	"a password from /dev/tty": {steps: []step{
		{"RETRY ./password-tty\n", "password? "},
		{"secret\n", "<6 letters>", prompt},
		status("0 0"),
	}},
	"a password from /dev/tty, stdin elsewhere": {steps: []step{
		{"RETRY ./password-tty </dev/null\n", "password? "},
		{"secret\n", "<6 letters>", prompt},
		status("0 0"),
	}},
	"an editor": {steps: []step{
		{"RETRY ./editor\n", "editing\r\n"},
		{"a", "<a>\r\n"},
		{interruptKey, "<$'\\003'>\r\n"},
		{suspendKey, "<$'\\032'>\r\n"},
		{"\r", "<$'\\r'>\r\n"},
		{"\xff", "<$'\\377'>\r\n"},
		{"q", "bye\r\n", prompt},
		status("0 0"),
	}},
	"an editor that stops its group": {steps: []step{
		{"RETRY ./editor\n", "editing\r\n"},
		{"z", "suspending", "Stopped", prompt},
		{"fg\n", "editing again\r\n"},
		{"z", "suspending", "Stopped", prompt},
		{"fg\n", "editing again\r\n"},
		{"a", "<a>\r\n"},
		{"q", "bye\r\n", prompt},
		status("0 0"),
	}},
	"an editor that stops itself": {steps: []step{
		{"RETRY ./editor\n", "editing\r\n"},
		{"Z", "suspending", "Stopped", prompt},
		{"fg\n", "editing again\r\n"},
		{"Z", "suspending", "Stopped", prompt},
		{"fg\n", "editing again\r\n"},
		{"a", "<a>\r\n"},
		{"q", "bye\r\n", prompt},
		status("0 0"),
	}},
	"an editor that is killed": {prefix: "retry -n 1 -- ", steps: []step{
		{"RETRY ./editor\n", "editing\r\n"},
		{"k", prompt},
		status("137 137"),
	}},
	"Ctrl-Z and fg": {steps: []step{
		{"RETRY ./sure\n", "sure? "},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "sure\r\n"},
		{"no\n", "<no>", "sure? "},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "sure\r\n"},
		{"yes\n", "<yes>", prompt},
		status("0 0"),
	}},
	"Ctrl-Z and fg at a password": {steps: []step{
		{"RETRY ./password\n", "password? "},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "password\r\n"},
		{"secret\n", "<6 letters>", prompt},
		status("0 0"),
	}},
	"Ctrl-Z where the command cleans up": {steps: []step{
		{"RETRY ./careful\n", "careful?\r\n"},
		{suspendKey, "cleaned up", "Stopped", prompt},
		{"fg\n", "back again\r\n"},
		{suspendKey, "cleaned up", "Stopped", prompt},
		{"fg\n", "back again\r\n"},
		{"yes\n", "answer yes", prompt},
		status("0 0"),
	}},
	"Ctrl-Z where the command ignores it": {steps: []step{
		{"RETRY ./stubborn\n", "sure? "},
		{suspendKey, "^Z"},
		{"yes\n", "<yes>", prompt},
		status("0 0"),
	}},
	"Ctrl-Z, bg, fg": {steps: []step{
		{"RETRY ./sure\n", "sure? "},
		{suspendKey, "Stopped", prompt},
		{"bg; " + untilStopped, "stopped 1", prompt}, // it reads, and must not in the background
		{"fg\n", "sure\r\n"},
		{"no\n", "<no>", "sure? "},
		{suspendKey, "Stopped", prompt},
		{"bg; " + untilStopped, "stopped 1", prompt},
		{"fg\n", "sure\r\n"},
		{"yes\n", "<yes>", prompt},
		status("0 0"),
	}},
	"& and fg": {steps: []step{
		{"RETRY ./sure & " + untilStopped, "stopped 1", prompt},
		{"fg\n", "sure\r\n"},
		{"no\n", "<no>", "sure? "},
		{"yes\n", "<yes>", prompt},
		status("0 0"),
	}},
	// Without --foreground, a background command whose stdin is a pipe has a process group of its own, which fg does
	// not bring to the foreground.
	"a pipeline that asks, & and fg": {prefix: "retry --foreground -- ", steps: []step{
		{"seq 2 | RETRY ./each | cat & " + untilStopped, "stopped 1", prompt},
		{"fg\n", "cat\r\n"},
		{"yes\n", "delete 2? "},
		{"yes\n", "gone: 1 2", prompt},
		status("0 0"),
	}},
	"Ctrl-C in a loop": {steps: []step{
		{"for i in 1 2 3; do echo round $i >>log; RETRY ./sure; done\n", "sure? "},
		{interruptKey, prompt},
		status("130 130"),
	}},
	"Ctrl-C in a pipeline in a loop": {steps: []step{
		{"for i in 1 2 3; do echo round $i >>log; RETRY ./sure | cat; done\n", "sure? "},
		{interruptKey, prompt},
		status("130 130"),
	}},
	"Ctrl-C in a script": {steps: []step{
		{"bash -c 'RETRY ./sure; echo after $?; exit 3'\n", "sure? "},
		{interruptKey, prompt},
		status("130 130"),
	}},
	"Ctrl-C at a password": {steps: []step{
		{"RETRY ./password\n", "password? "},
		{interruptKey, prompt},
		status("130 130"),
	}},
	`Ctrl-\`: {steps: []step{
		{"ulimit -c 0\n", prompt},
		{"RETRY cat\n", "cat\r\n"},
		{"one\n", "one\r\none\r\n"},
		{quitKey, prompt},
		status("131 131"),
	}},
	"a pipeline that asks": {steps: []step{
		{"seq 2 | RETRY ./each | cat\n", "delete 1? "},
		{"yes\n", "delete 2? "},
		{"yes\n", "gone: 1 2", prompt},
		status("0 0 0 0"),
	}},
	"a pipeline that asks, Ctrl-Z, fg, Ctrl-C": {steps: []step{
		{"seq 2 | RETRY ./each | cat\n", "delete 1? "},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "cat\r\n"},
		{"yes\n", "delete 2? "},
		{interruptKey, prompt},
		status("130 130"),
	}},
	"a substitution that asks": {steps: []step{
		{"answer=$(RETRY ./answer); echo it was $answer\n", "answer? "},
		{"42\n", "it was 42", prompt},
		status("0 0"),
	}},
	"loops with pipefail": {prefix: "retry -n 1 -- ", steps: []step{
		{"set -o pipefail\n", prompt},
		{"for i in 0 3 5; do echo $i | RETRY ./fail | cat; echo round $i: $? ${PIPESTATUS[*]}; done\n",
			"round 5: 5 0 5 0", prompt},
		{"until echo 4 | RETRY ./fail | cat; do echo failed; break; done; false | RETRY ./fail\n", "failed", prompt},
		status("7 1 7"),
	}},
	"a reader that leaves": {prefix: "retry -n 1 -- ", steps: []step{
		{"RETRY yes | head -n 2\n", "y\r\ny\r\n", prompt},
		status("0 141 0"),
	}},
	"a process that stays in the background": {steps: []step{
		{"mkfifo order report\n", prompt},
		{"RETRY ./daemon\n", "started", prompt},
		status("0 0"),
		{"echo words >order; read <report\n", "late words", prompt},
	}},
	"a shell in the shell": {steps: []step{
		{"RETRY bash --norc --noprofile -i\n", prompt},
		{"./look inside; cat\n", "cat\r\n"},
		{"one\n", "one\r\none\r\n"},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "cat\r\n"},
		{interruptKey, prompt},
		{"half a line", "half a line"},
		{interruptKey, prompt},
		{"exit 0\n", prompt},
		status("0 0"),
	}},
	"a shell in the shell that is suspended": {steps: []step{
		{"RETRY bash --norc --noprofile -i\n", prompt},
		{"suspend\n", "Stopped", prompt},
		{"fg\n", "-i\r\n", prompt},
		{"exit 0\n", prompt},
		status("0 0"),
	}},
	"vim": {needs: "vim", steps: []step{
		{"RETRY vim -u NONE -i NONE -n notes\n", "[New"},
		{"i"},
		{"hello", "hello"},
		{"\x1b"},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "hello"},
		{"a world", "world"},
		{"\x1b"},
		{":wq\r", "written", prompt},
		status("0 0"),
		{"cat notes >>log\n", prompt},
	}},
	"less": {needs: "less", steps: []step{
		{"export LESS= LESSHISTFILE=-; seq 100 >numbers\n", prompt},
		{"RETRY less numbers\n", "\x1b[7mnumbers"},
		{"G", "(END)"},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "(END)"},
		{"q", prompt},
		status("0 0"),
	}},
	"less of a pipe": {needs: "less", steps: []step{
		{"export LESS= LESSHISTFILE=-\n", prompt},
		{"seq 100 | RETRY less\n", "\n:"},
		{"G", "(END)"},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "(END)"},
		{"q", prompt},
		status("0 0"),
	}},
	"ssh-keygen": {needs: "ssh-keygen", steps: []step{
		{"RETRY ssh-keygen -q -t ed25519 -f key\n", "passphrase): "},
		{"correct horse\n", "again: "},
		{"correct horse\n", prompt},
		status("0 0"),
		{"RETRY ssh-keygen -y -f key\n", "passphrase: "},
		{interruptKey, prompt},
		status("130 130"),
	}},
	"ssh-keygen, Ctrl-Z, fg": {needs: "ssh-keygen", steps: []step{
		{"RETRY ssh-keygen -q -t ed25519 -f key\n", "passphrase): "},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "passphrase): "},
		{"correct horse\n", "again: "},
		{"correct horse\n", prompt},
		status("0 0"),
	}},
	"getpass of Python": {needs: "python3", steps: []step{
		{`RETRY python3 -c 'import getpass; print(len(getpass.getpass()), "letters")'` + "\n", "Password: "},
		{suspendKey, "Stopped", prompt},
		{"fg\n", "letters\")'\r\n"},
		{"secret\n", "6 letters", prompt},
		status("0 0"),
	}},
	"Ctrl-C that a command survives":       {run: survivesCtrlC},
	"what a command hears of Ctrl-Z":       {run: stopsTheListener},
	"resizing the window":                  {run: resizesTheWindow},
	"hanging up on a command that goes on": {run: hangsUpOnACommand},
	"hanging up on a shell":                {run: hangsUpOnAShell},
}

// status has the shell print the exit status of the last command, and of each part of its pipeline.
func status(want string) step {
	return step{"echo status $? ${PIPESTATUS[*]}\n", "\nstatus " + want + "\r\n", prompt}
}

// TestTranscript runs each session with retry before the commands and without it. Except for retry's own lines, both
// transcripts are the same.
func TestTranscript(t *testing.T) {
	binary := buildForTerminals(t)
	for name, tt := range sessions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requirePrograms(t, "bash", "ps", tt.needs)
			if tt.run == nil {
				tt.run = func(s *session) { s.runSteps(tt.steps) }
			}
			if tt.prefix == "" {
				tt.prefix = "retry -- "
			}
			bare, wrapped := record(t, binary, "", tt.run), record(t, binary, tt.prefix, tt.run)
			compare(t, "the screen shows", bare.screen, wrapped.screen)
			compare(t, "the commands saw", bare.log, wrapped.log)
		})
	}
}

// requirePrograms skips a session where the system lacks a program.
func requirePrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil && name != "" {
			t.Skip(err)
		}
	}
}

// compare reports the first line in which two texts differ, with what follows.
func compare(t *testing.T, what, bare, wrapped string) {
	t.Helper()
	if bare == wrapped {
		return
	}
	a, b := strings.SplitAfter(bare, "\n"), strings.SplitAfter(wrapped, "\n")
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	t.Errorf("after %q\n%s with retry: got\n%q\nwant, as without it,\n%q", a[max(0, same-1):same], what, b[same:],
		a[same:])
}

func record(t *testing.T, binary, prefix string, run func(*session)) transcript {
	t.Helper()
	s := &session{newConsole(t, binary), prefix}
	s.resize(wide)
	for name, code := range sessionScripts {
		testkit.Must(s, os.WriteFile(filepath.Join(s.dir, name), []byte("#!/usr/bin/env bash\n. ./prelude\n"+code+"\n"),
			0o700))
	}
	for name, text := range map[string]string{"prelude": prelude, "inputrc": inputrc, "log": "", "heard": ""} {
		testkit.Must(s, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	self, err := os.Executable()
	testkit.Must(s, err)
	for name := range programs {
		testkit.Must(s, os.Symlink(self, filepath.Join(s.dir, name)))
	}
	s.env = append(s.env, "INPUTRC=inputrc", "BASH_SILENCE_DEPRECATION_WARNING=1", "GORACE=atexit_sleep_ms=0")
	run(s)
	return transcript{s.normal(string(s.raw)), s.read("log")}
}

var (
	ownLines = regexp.MustCompile(fmt.Sprintf(`(?:(?: {%d})?\r\x1b\[K)*(?:\x1b\[\d*m)*retry: [^\n]*\n`, wide))
	// The terminal echoes keys that send signals before or after the output that the signal causes. The last one is a
	// query that vim sends when it is idle.
	unordered = strings.NewReplacer("^C", "", "^Z", "", `^\`, "", "\x1b[?4m", "")
	jobIDs    = regexp.MustCompile(`(?m)^(\[\d+\]) \d+`)
	deaths    = regexp.MustCompile(`(?m)^Killed.*\n`) // retry reports that itself
	blanks    = regexp.MustCompile(` {2,}`)
)

// normal returns a screen without what retry adds and without what differs from run to run.
func (s *session) normal(screen string) string {
	screen = unordered.Replace(screen)
	if s.prefix != "" {
		screen = ownLines.ReplaceAllString(screen, "")
		screen = strings.ReplaceAll(screen, s.prefix, "")
	}
	screen = deaths.ReplaceAllString(screen, "")
	screen = jobIDs.ReplaceAllString(screen, "$1 PID")
	return blanks.ReplaceAllString(screen, " ")
}

// runSteps takes the steps in an interactive shell.
func (s *session) runSteps(steps []step) {
	s.Helper()
	s.open()
	s.finish(steps...)
}

// finish takes the last steps in a shell, and logs how they leave the terminal.
func (s *session) finish(steps ...step) {
	s.Helper()
	for _, step := range steps {
		s.typeKeys(step[0], step[1:]...)
	}
	s.typeKeys("./look last; exit\n")
	s.exits(0)
}

func (s *session) open() {
	s.Helper()
	s.start("bash", "--norc", "--noprofile", "-i")
	s.expect(prompt)
}

// typeKeys types something when every process is idle, and waits for what is then shown.
func (s *session) typeKeys(typed string, shown ...string) {
	s.Helper()
	s.idle()
	s.press(strings.ReplaceAll(typed, "RETRY ", s.prefix))
	s.expect(shown...)
}

func survivesCtrlC(s *session) {
	s.open()
	s.typeKeys("for i in 1 2; do RETRY ./listener; done\n", "listening")
	for n := range 3 {
		s.typeKeys(interruptKey)
		s.expectSignals("SIGINT " + strconv.Itoa(n+1))
	}
	s.signalCommand(syscall.SIGUSR2)
	s.expect("listening") // the loop goes on
	s.signalCommand(syscall.SIGUSR2)
	s.expect(prompt)
	s.finish(status("0 0"))
}

func stopsTheListener(s *session) {
	s.open()
	s.typeKeys("RETRY ./listener\n", "listening")
	for n := range 4 {
		s.typeKeys(suspendKey, "Stopped", prompt)
		s.typeKeys([]string{"fg\n", "bg; fg\n"}[n%2])
		s.expectSignals("SIGCONT " + strconv.Itoa(n+1))
	}
	s.signalCommand(syscall.SIGUSR2)
	s.expect(prompt)
	s.finish(status("0 0"))
}

func resizesTheWindow(s *session) {
	s.open()
	s.typeKeys("RETRY ./listener\n", "listening")
	for n := range 3 {
		s.resize(wide + 1 + uint16(n))
		s.expectSignals("SIGWINCH " + strconv.Itoa(n+1))
	}
	s.signalCommand(syscall.SIGUSR2)
	s.expect(prompt)
	s.finish(status("0 0"))
}

func hangsUpOnACommand(s *session) {
	s.start(strings.Fields(s.prefix + "./listener")...)
	s.expect("listening\r\n")
	testkit.Must(s, s.master.Close())
	s.expectSignals("SIGHUP 1", "SIGCONT 1")
	s.signalCommand(syscall.SIGUSR2)
	s.exits(0)
}

func hangsUpOnAShell(s *session) {
	s.open()
	s.typeKeys("mkfifo order; exec 9<>order; trap 'read -u 9' EXIT\n", prompt)
	s.typeKeys("RETRY ./listener\n", "listening\r\n")
	testkit.Must(s, s.master.Close())
	s.expectSignals("SIGHUP 1")
	// The shell ends, and the system hangs up once more.
	testkit.Must(s, os.WriteFile(filepath.Join(s.dir, "order"), []byte("\n"), 0))
	s.wait()
	s.expectSignals("SIGHUP 2", "SIGCONT 1")
	s.signalCommand(syscall.SIGUSR2)
	s.appears("log", "last:\n")
}

// expectSignals waits until the listener has got these signals, then has it log all that it got. The request for that
// is a signal that retry passes on, so it comes after the others.
func (s *session) expectSignals(signals ...string) {
	s.Helper()
	for _, sig := range signals {
		s.appears("heard", sig+"\n")
	}
	s.signalCommand(syscall.SIGUSR1)
	s.appears("log", "so far "+strings.Join(signals, ", ")+"\n")
}

// signalCommand sends a signal to what the shell started: the command, or retry in front of it.
func (s *session) signalCommand(sig syscall.Signal) {
	s.Helper()
	fields := strings.Fields(s.read("pids")) // of the command and of its parent
	if s.prefix != "" {
		fields = fields[1:]
	}
	pid, err := strconv.Atoi(fields[0])
	testkit.Must(s, err)
	s.signal(pid, sig)
}

// appears waits for a text in a file.
func (s *session) appears(name, text string) {
	s.Helper()
	for end := time.Now().Add(patience); !strings.Contains(s.read(name), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%q is not in the file %s:\n%s", text, name, s.read(name))
		}
	}
}

const (
	quitKey = "\x1c"
	wide    = 200 // what is typed fits into a line
	inputrc = "set enable-bracketed-paste off\n"

	// untilStopped shows the jobs once there is a stopped one.
	untilStopped = "until jobs | grep -q Stopped; do :; done; jobs; echo stopped $(jobs | wc -l)\n"
)
