//go:build unix

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// session is what somebody does at a console, with retry in front of the commands or without.
type session struct {
	*console
	front string
}

// transcript is what is left of a session.
type transcript struct {
	screen string // what the terminal showed
	log    string // what the commands themselves saw
}

// step is something typed, and the texts that it brings to the screen, one after the other.
type step []string

// sessions are played at an interactive bash. RETRY in what is typed is where retry stands, or nothing.
var sessions = map[string]struct {
	front string // what RETRY stands for, where it is not "retry -- "
	needs string // a program that some machines lack
	steps []step // at the prompt of a shell
	play  func(*session)
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
	"an editor that is killed": {front: "retry -n 1 -- ", steps: []step{
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
	// Without --foreground a command in the background whose stdin is a pipe has a group of its own, which fg does not bring to the front.
	"a pipeline that asks, & and fg": {front: "retry --foreground -- ", steps: []step{
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
	"loops with pipefail": {front: "retry -n 1 -- ", steps: []step{
		{"set -o pipefail\n", prompt},
		{"for i in 0 3 5; do echo $i | RETRY ./fail | cat; echo round $i: $? ${PIPESTATUS[*]}; done\n", "round 5: 5 0 5 0", prompt},
		{"until echo 4 | RETRY ./fail | cat; do echo failed; break; done; false | RETRY ./fail\n", "failed", prompt},
		status("7 1 7"),
	}},
	"a reader that leaves": {front: "retry -n 1 -- ", steps: []step{
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
	"Ctrl-C that a command survives":       {play: interruptsInVain},
	"what a command hears of Ctrl-Z":       {play: stopsTheListener},
	"resizing the window":                  {play: resizesTheWindow},
	"hanging up on a command that goes on": {play: hangsUpOnACommand},
	"hanging up on a shell":                {play: hangsUpOnAShell},
}

// status has the shell say how the last command ended: as a whole, and each part of a pipeline.
func status(want string) step {
	return step{"echo status $? ${PIPESTATUS[*]}\n", "\nstatus " + want + "\r\n", prompt}
}

// TestTranscript plays each session with retry in front of the commands and without. But for retry's own lines, nobody can
// tell them apart.
func TestTranscript(t *testing.T) {
	binary := buildForTerminals(t)
	for name, tt := range sessions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, "bash", "ps", tt.needs)
			if tt.play == nil {
				tt.play = func(s *session) { s.follow(tt.steps) }
			}
			if tt.front == "" {
				tt.front = "retry -- "
			}
			bare, wrapped := record(t, binary, "", tt.play), record(t, binary, tt.front, tt.play)
			compare(t, "the screen shows", bare.screen, wrapped.screen)
			compare(t, "the commands saw", bare.log, wrapped.log)
		})
	}
}

// need skips a session where the system lacks a program.
func need(t *testing.T, programs ...string) {
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
	t.Errorf("after %q\n%s, without retry,\n%q\nand with it\n%q", a[max(0, same-1):same], what, a[same:], b[same:])
}

func record(t *testing.T, binary, front string, play func(*session)) transcript {
	t.Helper()
	s := &session{newConsole(t, binary), front}
	s.resize(wide)
	for name, code := range acts {
		testkit.Must(s, os.WriteFile(filepath.Join(s.dir, name), []byte("#!/usr/bin/env bash\n. ./prelude\n"+code+"\n"), 0o700))
	}
	for name, text := range map[string]string{"prelude": prelude, "inputrc": inputrc, "log": "", "heard": ""} {
		testkit.Must(s, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	self, err := os.Executable()
	testkit.Must(s, err)
	for name := range roles {
		testkit.Must(s, os.Symlink(self, filepath.Join(s.dir, name)))
	}
	s.env = append(s.env, "INPUTRC=inputrc", "BASH_SILENCE_DEPRECATION_WARNING=1", "GORACE=atexit_sleep_ms=0")
	play(s)
	return transcript{s.normal(string(s.raw)), s.read("log")}
}

var (
	ownLines = regexp.MustCompile(`retry: [^\n]*\n`)
	// What the terminal echoes of keys that send signals may come before or after what the signal leads to. The last one is a
	// question that vim asks when it has nothing else to do.
	unordered = strings.NewReplacer("^C", "", "^Z", "", `^\`, "", "\x1b[?4m", "")
	jobIDs    = regexp.MustCompile(`(?m)^(\[\d+\]) \d+`)
	deaths    = regexp.MustCompile(`(?m)^Killed.*\n`) // retry tells of that itself
	blanks    = regexp.MustCompile(` {2,}`)
)

// normal is a screen as it would be without retry, as far as two screens can be compared.
func (s *session) normal(screen string) string {
	screen = unordered.Replace(screen)
	if s.front != "" {
		screen = ownLines.ReplaceAllString(screen, "")
		screen = strings.ReplaceAll(screen, s.front, "")
	}
	screen = deaths.ReplaceAllString(screen, "")
	screen = jobIDs.ReplaceAllString(screen, "$1 PID")
	return blanks.ReplaceAllString(screen, " ")
}

// follow takes the steps in an interactive shell.
func (s *session) follow(steps []step) {
	s.Helper()
	s.open()
	s.leave(steps...)
}

// leave takes the last steps in a shell, and looks at how they leave the terminal.
func (s *session) leave(steps ...step) {
	s.Helper()
	for _, step := range steps {
		s.act(step[0], step[1:]...)
	}
	s.act("./look last; exit\n")
	s.exits(0)
}

func (s *session) open() {
	s.Helper()
	s.start("bash", "--norc", "--noprofile", "-i")
	s.expect(prompt)
}

// act types something when all that was typed before has been dealt with, and waits for what comes of it.
func (s *session) act(typed string, shown ...string) {
	s.Helper()
	s.idle()
	s.press(strings.ReplaceAll(typed, "RETRY ", s.front))
	s.expect(shown...)
}

func interruptsInVain(s *session) {
	s.open()
	s.act("for i in 1 2; do RETRY ./listener; done\n", "listening")
	for n := range 3 {
		s.act(interruptKey)
		s.hears("SIGINT " + strconv.Itoa(n+1))
	}
	s.tell(syscall.SIGUSR2)
	s.expect("listening") // the loop goes on
	s.tell(syscall.SIGUSR2)
	s.expect(prompt)
	s.leave(status("0 0"))
}

func stopsTheListener(s *session) {
	s.open()
	s.act("RETRY ./listener\n", "listening")
	for n := range 4 {
		s.act(suspendKey, "Stopped", prompt)
		s.act([]string{"fg\n", "bg; fg\n"}[n%2])
		s.hears("SIGCONT " + strconv.Itoa(n+1))
	}
	s.tell(syscall.SIGUSR2)
	s.expect(prompt)
	s.leave(status("0 0"))
}

func resizesTheWindow(s *session) {
	s.open()
	s.act("RETRY ./listener\n", "listening")
	for n := range 3 {
		s.resize(wide + 1 + uint16(n))
		s.hears("SIGWINCH " + strconv.Itoa(n+1))
	}
	s.tell(syscall.SIGUSR2)
	s.expect(prompt)
	s.leave(status("0 0"))
}

func hangsUpOnACommand(s *session) {
	s.start(strings.Fields(s.front + "./listener")...)
	s.expect("listening\r\n")
	testkit.Must(s, s.master.Close())
	s.hears("SIGHUP 1", "SIGCONT 1")
	s.tell(syscall.SIGUSR2)
	s.exits(0)
}

func hangsUpOnAShell(s *session) {
	s.open()
	s.act("mkfifo order; exec 9<>order; trap 'read -u 9' EXIT\n", prompt)
	s.act("RETRY ./listener\n", "listening\r\n")
	testkit.Must(s, s.master.Close())
	s.hears("SIGHUP 1")
	testkit.Must(s, os.WriteFile(filepath.Join(s.dir, "order"), []byte("\n"), 0)) // the shell ends, and the system hangs up once more
	s.end()
	s.hears("SIGHUP 2", "SIGCONT 1")
	s.tell(syscall.SIGUSR2)
	s.appears("log", "last:\n")
}

// hears waits until the listener has heard so much, then has it tell what that was. What tells it goes the way of the signals that
// retry passes on, after them.
func (s *session) hears(signals ...string) {
	s.Helper()
	for _, sig := range signals {
		s.appears("heard", sig+"\n")
	}
	s.tell(syscall.SIGUSR1)
	s.appears("log", "so far "+strings.Join(signals, ", ")+"\n")
}

// tell sends a signal to what a shell takes for the command: retry, where it is in front.
func (s *session) tell(sig syscall.Signal) {
	s.Helper()
	fields := strings.Fields(s.read("pids")) // of the command and of its parent
	if s.front != "" {
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

// prelude is what the scripts of the sessions begin with.
const prelude = `
log() { echo "$*" >>log; }
look() {
	for fd in 0 1 2; do [ -t $fd ] && log $1: $fd is a terminal; done
	set -- $1 $(ps -o pgid=,tpgid= -p $$)
	[ $2 = $3 ] && log $1: in the foreground
	log $1: $(stty -a </dev/tty)
}
[ $0 = ./look ] || look first`

// acts are the scripts of the sessions.
var acts = map[string]string{
	"look": `look $1`,
	"sure": `while printf 'sure? '; read -r x || exit 1; do echo "<$x>"; [ "$x" = yes ] && break; done
		look last`,
	"password": `read -rsp 'password? ' x; echo "<${#x} letters>"
		look last`,
	"password-tty": `read -rsp 'password? ' x </dev/tty; echo "<${#x} letters>"
		look last`,
	"editor": `raw() { stty raw -echo; printf '%s\r\n' "$1"; }
		saved=$(stty -g)
		raw editing
		while key=$(dd bs=1 count=1 2>/dev/null; echo .); do
			case $key in
			. | q.) break ;;
			k.) kill -KILL $$ ;;
			z.) stty "$saved"; echo suspending; kill -TSTP 0; raw 'editing again' ;;
			Z.) stty "$saved"; echo suspending; kill -TSTP $$; raw 'editing again' ;;
			*) printf '<%q>\r\n' "${key%.}" ;;
			esac
		done
		stty "$saved"; echo bye
		look last`,
	"stubborn": `trap '' TSTP; printf 'sure? '; read -r x; echo "<$x>"
		look last`,
	"each": `while read -r item; do
			printf 'delete %s? ' $item >/dev/tty
			read -r x </dev/tty && [ "$x" = yes ] && gone="$gone $item"
		done
		echo gone:$gone
		look last`,
	"answer": `printf 'answer? ' >&2; read -r x; echo "$x"
		look last`,
	"fail":   `read -r x; exit ${x:-7}`,
	"daemon": `(read -rt 60 x <>order; echo late $x; echo done >report) & echo started`,
}

// roles are commands that take more care of signals than a script can. The test binary plays them under their names.
var roles = map[string]func() error{
	"listener": playListener,
	"careful":  playCareful,
}

func init() {
	play, isRole := roles[filepath.Base(os.Args[0])]
	if !isRole {
		return
	}
	pids := fmt.Appendln(nil, os.Getpid(), os.Getppid())
	if err := errors.Join(shell("./look first"), os.WriteFile("pids", pids, 0o600), play(), shell("./look last")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	os.Exit(0)
}

// shell runs a line of shell at the terminal.
func shell(code string) error {
	cmd := exec.Command("sh", "-c", code)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// note adds a line to a file.
func note(name, line string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}

// playListener counts signals. USR1 has it tell what has come so far, USR2 ends it.
func playListener() error {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGCONT, syscall.SIGWINCH,
		syscall.SIGUSR1, syscall.SIGUSR2)
	fmt.Println("listening")
	heard := map[syscall.Signal]int{}
	late := time.After(2 * patience)
	for err := error(nil); err == nil; {
		select {
		case <-late:
			return errors.New("nobody ends the listener")
		case sig := <-signals:
			if sig == syscall.SIGUSR2 {
				return nil
			}
			err = listen(heard, sig.(syscall.Signal))
		}
	}
	return nil
}

func listen(heard map[syscall.Signal]int, sig syscall.Signal) error {
	if sig != syscall.SIGUSR1 {
		heard[sig]++
		return note("heard", fmt.Sprintf("%s %d", unix.SignalName(sig), heard[sig]))
	}
	var all []string
	for _, sig := range slices.Sorted(maps.Keys(heard)) {
		all = append(all, fmt.Sprintf("%s %d", unix.SignalName(sig), heard[sig]))
	}
	return note("log", "so far "+strings.Join(all, ", "))
}

// playCareful asks with the echo off, and turns it on while it is stopped.
func playCareful() error {
	suspended, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(suspended, syscall.SIGTSTP)
	signal.Notify(continued, syscall.SIGCONT)
	answer := make(chan string)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	err := shell("stty -echo; echo 'careful?'")
	for err == nil {
		select {
		case text := <-answer:
			return shell("stty echo; echo answer " + text)
		case <-suspended:
			err = shell("stty echo; echo cleaned up")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // after Notify Go never gives TSTP its default action back
			<-continued
			err = errors.Join(err, shell("stty -echo; echo back again"))
		}
	}
	return err
}
