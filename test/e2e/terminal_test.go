//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state/lock"
)

// TestTerminal does what people do at a terminal, with the real binary on a pseudo-terminal.
func TestTerminal(t *testing.T) {
	binary := buildForTerminals(t)
	tests := map[string]func(*console){
		"Ctrl-C reaches the command once":         ctrlCReachesTheCommandOnce,
		"Ctrl-C reaches a group of its own":       ctrlCReachesAnotherGroup,
		"Ctrl-C stops the caller's loop":          ctrlCStopsTheCallersLoop,
		"Ctrl-C ends a wait":                      ctrlCEndsAWait,
		"Ctrl-Z and fg of a command":              ctrlZStopsACommand,
		"bg of a command that needs no terminal":  bgLetsACommandWork,
		"Ctrl-Z, bg and fg of a wait":             ctrlZStopsAWait,
		"bg of a wait":                            bgLetsAWaitEnd,
		"hanging up interrupts":                   hangingUpInterrupts,
		"the command reads the terminal":          theCommandReads,
		"the command reads a password":            theCommandReadsAPassword,
		"the command is on a terminal":            theCommandIsOnATerminal,
		"the countdown cleans up":                 theCountdownCleansUp,
		"the countdown fits a narrow window":      theCountdownFits,
		"a line begins where it should":           linesBeginAtTheStart,
		"colours and marks":                       linesHaveColours,
		"a line of life while output is held":     lineOfLife,
		"a long table goes through a pager":       longTablesArePaged,
		"no countdown when stderr is a file":      noCountdownInAFile,
		"no countdown in the background":          noCountdownInTheBackground,
		"a command inherits what it would anyhow": inheritsTheSame,
		"add says that no worker runs":            addSaysThatNoWorkerRuns,
		"doctor says that it is busy":             doctorSaysThatItIsBusy,
		"what reads many tasks says so":           readersSayThatTheyAreBusy,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(newConsole(t, binary)) })
	}
}

func addSaysThatNoWorkerRuns(s *console) {
	s.start("retry", "add", "--", "true")
	s.expect("no worker runs: retry worker")
	s.exits(0)
}

// doctor waits here for a lock, longer than a second, as it works on a large journal.
func doctorSaysThatItIsBusy(s *console) {
	s.output("retry", "--", "true")
	unlock, err := lock.Exclusive(s.Context(), filepath.Join(s.dir, "state"))
	testkit.Must(s, err)
	s.env = append(s.env, "NO_COLOR=1")
	s.start("retry", "doctor")
	s.expect("retry: examines the journal, 1s")
	unlock()
	s.exits(0)
	if _, after, _ := strings.Cut(string(s.raw), "s\r\x1b[K✓ sqlite"); !strings.Contains(after, "all is well") {
		s.Errorf("got %q, want the line to be erased before the findings", s.raw)
	}
}

// They wait for a lock, too. The line is erased before what they print, and drawn beside a file that they print to.
func readersSayThatTheyAreBusy(s *console) {
	s.output("retry", "--", "true")
	s.env = append(s.env, "NO_COLOR=1")
	tests := []struct{ line, said, first string }{
		{"retry status", "reads the tasks", "ID "},
		{"retry status --json", "reads the tasks", "{"},
		{"retry status --json | cat", "reads the tasks", "{"},
		{"retry status --json >file; echo done", "reads the tasks", "done"},
		{"retry status --dead", "reads the tasks", "no dead letters"},
		{"retry cancel --status waiting", "looks for the tasks", "nothing to cancel"},
		{"retry requeue --dead --dry-run", "reads the tasks", "no dead letters"},
	}
	script := ""
	for _, test := range tests {
		script += "read next; " + test.line + "\n"
	}
	s.start("sh", "-c", script)
	for _, test := range tests {
		unlock, err := lock.Exclusive(s.Context(), filepath.Join(s.dir, "state"))
		testkit.Must(s, err)
		s.press("\r")
		s.expect("retry: " + test.said + ", 1s")
		unlock()
		s.expect("\r\x1b[K" + test.first)
	}
	s.exits(0)
}

func ctrlCReachesTheCommandOnce(s *console) {
	s.start("retry", "-n", "2", "--", "./counter")
	retry := s.number("ready ")
	for n := range 3 {
		s.press(interruptKey)
		s.expect("INT " + strconv.Itoa(n+1))
		// USR1 is passed on after whatever the Ctrl-C led to, and reports all that had come by then.
		s.signal(retry, syscall.SIGUSR1)
		s.expect("got " + strconv.Itoa(n+1) + " INT, 0 WINCH")
	}
	for n := range 3 {
		s.resize(uint16(100 + n))
		s.expect("WINCH " + strconv.Itoa(n+1))
		s.signal(retry, syscall.SIGUSR1)
		s.expect("got 3 INT, " + strconv.Itoa(n+1) + " WINCH")
	}
	s.signal(retry, syscall.SIGUSR2) // the command exits 5
	s.diesOf(syscall.SIGINT)
	s.checkTask(taskRow{Status: "CANCELLED", Reason: "cancelled", AttemptCount: 1})
}

func ctrlCReachesAnotherGroup(s *console) {
	s.start("retry", "--group", "--", "./counter")
	retry := s.number("ready ")
	s.press(interruptKey)
	s.expect("INT 1")
	s.signal(retry, syscall.SIGUSR1)
	s.expect("got 1 INT, 0 WINCH")
	s.press(interruptKey) // the second one kills
	s.diesOf(syscall.SIGINT)
	s.checkTask(taskRow{Status: "CANCELLED", Reason: "cancelled", AttemptCount: 1})
}

func ctrlCStopsTheCallersLoop(s *console) {
	s.shell()
	for range 5 { // either retry or the command may get the signal first
		s.enter("for i in 1 2 3; do echo $i >>rounds; retry -n 1 -- ./hang; done")
		s.expect("hanging")
		s.press(interruptKey)
		s.expect(prompt)
	}
	s.enter("echo last-$?")
	s.expect("last-130")
	if got, want := s.read("rounds"), strings.Repeat("1\n", 5); got != want {
		s.Errorf("loop rounds: got %q, want %q", got, want)
	}
}

func ctrlCEndsAWait(s *console) {
	s.start("retry", "-b", "constant:1h", "-j", "none", "--", "false")
	s.expect("attempt 2/5 in 1h")
	s.press(interruptKey)
	s.diesOf(syscall.SIGINT)
	s.checkTask(taskRow{Status: "CANCELLED", Reason: "cancelled", AttemptCount: 1})
	s.checkScreen(80, `retry: attempt 1/5: exit 1 after .*; next in 1h`,
		`retry: cancelled by SIGINT \(retry status .*\)`)
}

func ctrlZStopsACommand(s *console) {
	s.shell()
	s.enter("retry -- cat")
	for _, line := range []string{"one", "two", "three"} {
		s.enter(line)
		s.expect(line + "\r\n")
		s.press(suspendKey)
		s.expect("Stopped", prompt)
		s.idle() // retry stops before cat does, which until then eats what is typed
		s.enter("fg")
		s.expect("retry -- cat")
	}
	s.press(endKey)
	s.expect(prompt)
	s.enter("echo status-$?")
	s.expect("status-0")
}

func bgLetsACommandWork(s *console) {
	testkit.Must(s, syscall.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600))
	s.shell()
	s.enter("retry -- ./worker")
	s.expect("working")
	s.press(suspendKey)
	s.expect("Stopped", prompt)
	s.enter("bg")
	s.expect(prompt)
	s.enter("echo go >fifo; wait; echo status-$?")
	s.expect("done with go", "status-0")
}

func ctrlZStopsAWait(s *console) {
	s.shell()
	s.enter("retry -b constant:1h -j none -- false")
	s.expect("attempt 2/5 in 1h")
	for _, command := range []string{"fg", "bg; fg"} {
		s.press(suspendKey)
		s.expect("Stopped", prompt)
		s.enter(command)
		s.expect("attempt 2/5 in")
	}
	s.press(interruptKey)
	s.expect(prompt)
	s.enter("echo status-$?")
	s.expect("status-130")
	s.checkTask(taskRow{Status: "CANCELLED", Reason: "cancelled", AttemptCount: 1})
}

func bgLetsAWaitEnd(s *console) {
	s.shell()
	s.enter("retry -b constant:2s -j none -- ./second")
	s.expect("attempt 2/5 in 2s")
	s.press(suspendKey)
	s.expect("Stopped", prompt)
	s.enter("bg; wait; echo status-$?")
	text := s.expect("second attempt", "succeeded in attempt 2", "status-0")
	if strings.Contains(text, "attempt 2/5 in") {
		s.Errorf("in the background: got %q, want no countdown", text)
	}
}

func hangingUpInterrupts(s *console) {
	s.start("retry", "--", "./hang")
	s.expect("hanging")
	testkit.Must(s, s.master.Close())
	s.diesOf(syscall.SIGHUP)
	s.checkTask(taskRow{Status: "PENDING", Reason: "hangup", Interrupted: true, AttemptCount: 1})
}

func theCommandReads(s *console) {
	s.start("retry", "-b", "constant:0", "--", "./ask")
	for _, answer := range []string{"no", "", "two words", "yes"} {
		s.expect("sure? ")
		s.enter(answer)
		s.expect("<" + answer + ">")
	}
	s.exits(0)
}

func theCommandReadsAPassword(s *console) {
	s.shell() // for its being there: read -s is bash's
	s.enter("retry -- bash ./password")
	s.expect("password? ")
	s.enter("secret")
	if text := s.expect("<secret>"); text != "<secret>" {
		s.Errorf("password: got %q on the terminal, want nothing", text)
	}
	s.enter("echo status-$?")
	s.expect("status-0")
}

func theCommandIsOnATerminal(s *console) {
	s.start("retry", "--", "sh", "-c", "for fd in 0 1 2; do test -t $fd && echo terminal $fd; done")
	s.expect("terminal 0", "terminal 1", "terminal 2")
	s.exits(0)
}

func theCountdownCleansUp(s *console) {
	s.start("retry", "-b", "constant:1.2s", "-j", "none", "--", "./second")
	s.expect("attempt 2/5 in 2s", "attempt 2/5 in 1s")
	s.checkScreen(80, `first attempt`, `retry: attempt 1/5: exit 1 after .*; next in 1\.2s`, `retry: attempt 2/5 in 1s`)
	s.exits(0)
	s.checkScreen(80, `first attempt`, `retry: attempt 1/5: exit 1 after .*; next in 1\.2s`, `second attempt`,
		`retry: succeeded in attempt 2, after .*`)
}

func theCountdownFits(s *console) {
	const width = 15
	s.resize(width)
	s.start("retry", "-b", "constant:100ms", "-j", "none", "--", "./second")
	s.expect("retry: attempt")
	s.exits(0)
	s.checkScreen(width, `first attempt`, `retry: attempt 1/5: exit 1 after .*; next in 100ms`, `second attempt`,
		`retry: succeeded in attempt 2, after .*`)
}

// linesBeginAtTheStart: the command's last line may have no end.
func linesBeginAtTheStart(s *console) {
	s.start("retry", "-b", "constant:100ms", "-j", "none", "--on-retry", "printf hook", "--", "./unended")
	s.exits(0)
	// The screen joins rows of 80 columns that were filled to their end.
	s.checkScreen(80, `first attempt {67}retry: attempt 1/5: exit 1 after .*; next in 100ms`,
		`hook {76}second attempt {66}retry: succeeded in attempt 2, after .*`)
}

func linesHaveColours(s *console) {
	s.shell()
	for _, tt := range []struct{ env, attempt, end string }{
		{"LC_ALL=C.UTF-8", "\x1b[2mretry: ↻ attempt 1/2", "\x1b[31mretry: ✗ gave up"},
		{"LC_ALL=C", "\x1b[2mretry: attempt 1/2", "\x1b[31mretry: gave up"},
		{"NO_COLOR=1", "\x1b[Kretry: attempt 1/2", "\nretry: gave up"},
		{"TERM=dumb", "retry: attempt 1/2", "\nretry: attempt 2/2"},
	} {
		s.enter(tt.env + " retry -n 2 -b constant:0 -- false")
		s.expect(tt.attempt, tt.end, prompt)
	}
}

func longTablesArePaged(s *console) {
	s.shell()
	s.enter("for i in 1 2 3 4 5 6; do retry -- true; done; stty rows 5")
	s.expect(prompt)
	s.enter("PAGER='sed s/^/paged:/' retry status")
	s.expect("paged:", prompt)
	s.enter("PAGER='head -n 1' retry status; echo status-$?")
	s.expect("ID", "status-0", prompt)
	for _, line := range []string{"PAGER='sed s/^/paged:/' retry status --no-pager",
		"PAGER='sed s/^/paged:/' retry status --limit 2", "PAGER= retry status",
		"PAGER='sed s/^/paged:/' retry status | cat"} {
		s.enter(line)
		if text := s.expect("COMMAND", prompt); strings.Contains(text, "paged:") {
			s.Errorf("%s: got %q, want no pager", line, text)
		}
	}
	s.enter("PAGER=no-such-pager retry status; echo status-$?")
	s.expect("retry: the pager", "status-125")
}

func lineOfLife(s *console) {
	s.start("retry", "-b", "constant:0", "--output", "final", "--", "./held")
	s.expect("attempt 1/5 runs, 1s", "attempt 1/5 runs, 2s")
	s.checkScreen(80, "retry: attempt 1/5 runs, 2s")
	testkit.Must(s, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	s.exits(0)
	s.checkScreen(80, "held")
}

func noCountdownInAFile(s *console) {
	file, err := os.Create(filepath.Join(s.dir, "stderr"))
	testkit.Must(s, err)
	defer file.Close()
	cmd := s.command("retry", "-b", "constant:100ms", "-j", "none", "--", "./second")
	cmd.Stderr = file
	s.launch(cmd)
	s.exits(0)
	s.checkScreen(80, "first attempt", "second attempt")
	lines := regexp.MustCompile(`^retry: attempt 1/5: exit 1 after \S+; next in 100ms\nretry: succeeded in attempt 2, after \S+\n$`)
	if got := s.read("stderr"); !lines.MatchString(got) {
		s.Errorf("stderr got %q", got)
	}
}

func noCountdownInTheBackground(s *console) {
	s.shell()
	s.enter("retry -b constant:100ms -j none -- ./second & wait; echo status-$?")
	text := s.expect("second attempt", "succeeded in attempt 2", "status-0")
	if strings.Contains(text, "attempt 2/5 in") {
		s.Errorf("in the background: got %q, want no countdown", text)
	}
}

// inheritsTheSame needs no terminal. It checks what SQLite, the Go runtime and retry itself could pass on to the
// command.
func inheritsTheSame(s *console) {
	probe := []string{"sh", "-c", `ls /dev/fd/; grep -E '^(SigBlk|SigIgn):' /proc/self/status; umask; ulimit -Sn; pwd`}
	callers := map[string][]string{
		"plainly":           {"env"},
		"under nohup":       {"nohup"},
		"ignoring signals":  {"sh", "-c", `trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP WINCH; exec "$@"`, "sh"},
		"in the background": {"sh", "-c", `trap '' INT; exec "$@"`, "sh"},
		"with a file open":  {"sh", "-c", `exec 7</dev/null; exec "$@"`, "sh"},
		"with limits":       {"sh", "-c", `umask 027; ulimit -Sn 100; exec "$@"`, "sh"},
	}
	for name, caller := range callers {
		bare := s.output(slices.Concat(caller, probe)...)
		wrapped := s.output(slices.Concat(caller, []string{"retry", "--"}, probe)...)
		if bare != wrapped {
			s.Errorf("%s: got with retry\n%s\nwant as without\n%s", name, wrapped, bare)
		}
	}
}

// What keys send, and the prompt of the shell.
const (
	interruptKey = "\x03"
	endKey       = "\x04"
	suspendKey   = "\x1a"
	prompt       = "shell> "
)

// scripts are the commands of the tests.
var scripts = map[string]string{
	// In wait the shell runs its traps at once, so that two signals of a kind do not become one.
	"counter": `int=0 winch=0
		trap 'int=$((int + 1)); echo INT $int' INT
		trap 'winch=$((winch + 1)); echo WINCH $winch' WINCH
		trap 'echo got $int INT, $winch WINCH' USR1
		trap 'kill $sleep; exit 5' USR2
		(trap '' INT USR1; echo ready $PPID; exec sleep 60) & sleep=$! # ready once no Ctrl-C can end the sleep
		while kill -0 $sleep; do wait $sleep; done`,
	"hang":     `echo hanging; exec sleep 60`,
	"worker":   `echo working; read -r x <fifo; echo done with $x`,
	"held":     `until [ -e go ]; do sleep 0.1; done; echo held`,
	"unended":  `[ $RETRY_ATTEMPT = 2 ] && printf 'second attempt' || { printf 'first attempt'; exit 1; }`,
	"second":   `[ $RETRY_ATTEMPT = 2 ] && echo second attempt || { echo first attempt; exit 1; }`,
	"ask":      `printf 'sure? '; read -r x; echo "<$x>"; [ "$x" = yes ]`,
	"password": `read -rsp 'password? ' x; echo "<$x>"`,
}

// The picture of retry plot is as wide as the terminal. With colours it is drawn in braille dots, without them in other
// characters.
func TestPlotOnTerminals(t *testing.T) {
	binary := buildForTerminals(t)
	for _, tt := range []struct {
		width  uint16
		env    string
		colour bool
	}{{width: 60, env: "TERM=xterm", colour: true}, {width: 140, env: "TERM=xterm", colour: true},
		{width: 80, env: "NO_COLOR=1"}, {
			width: 100, env: "TERM=dumb",
		}} {
		t.Run(fmt.Sprint(tt.width, " ", tt.env), func(t *testing.T) {
			s := newConsole(t, binary)
			s.resize(tt.width)
			s.start(tt.env, "retry", "plot", "exp:1s..1m/none", "exp:1s..1m/30%")
			s.exits(0)
			text := strings.ReplaceAll(string(s.raw), "\r", "")
			if strings.Contains(text, "\x1b[31m") != tt.colour || strings.Contains(text, "⡇") != tt.colour {
				t.Errorf("got %s\nwant colours and dots: %v", text, tt.colour)
			}
			widest, side := 0, 0
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(plainText(line), "\n")
				widest, side = max(widest, len([]rune(line))), max(side, strings.Count(line, "Load: "))
			}
			if want := int(tt.width); widest > want || widest < want-4 || side != 1+want/100 {
				t.Errorf("%d side by side, %d characters in a window of %d:\n%s", side, widest, want, text)
			}
		})
	}
}

const mebibyte = 1 << 20

// slow serves a file whose second half comes when the test has seen the progress of the first. It also reads a
// request's body then.
func slow(seen <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		half := strings.Repeat("x", 2*mebibyte)
		if r.URL.Path == "/silent" {
			half = half[:mebibyte]
		}
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", fmt.Sprint(2*len(half)))
			_, _ = fmt.Fprint(w, half)
			_ = http.NewResponseController(w).Flush()
		}
		<-seen
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, half)
	}
}

// TestTransferOnATerminal checks the progress line of a transfer.
func TestTransferOnATerminal(t *testing.T) {
	binary := buildForTerminals(t)
	tests := map[string]func(s *console, url string, seen chan struct{}){
		"it is shown and cleaned up":  theTransferCleansUp,
		"it fits a narrow window":     theTransferFits,
		"an upload is shown":          theUploadIsShown,
		"none where nobody wants one": noTransferInSilence,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			server := httptest.NewServer(slow(seen))
			defer server.Close()
			test(newConsole(t, binary), server.URL, seen)
		})
	}
}

func theTransferCleansUp(s *console, url string, seen chan struct{}) {
	s.start("retry", "http", "-o", "file", url)
	s.expect("retry: 50% of 4 MiB, ", " left")
	close(seen)
	s.exits(0)
	s.checkScreen(80)
	if info, err := os.Stat(filepath.Join(s.dir, "file")); err != nil || info.Size() != 4*mebibyte {
		s.Errorf("got %+v, error %v, want a file of 4 MiB", info, err)
	}
}

func theTransferFits(s *console, url string, seen chan struct{}) {
	const width = 15
	s.resize(width)
	s.start("retry", "http", "-o", "file", url)
	s.expect("retry: 50% of")
	close(seen)
	s.exits(0)
	s.checkScreen(width)
}

func theUploadIsShown(s *console, url string, seen chan struct{}) {
	// The file is larger than the socket buffers of both ends.
	testkit.Must(s, os.WriteFile(filepath.Join(s.dir, "large"), make([]byte, 64*mebibyte), 0o600))
	s.start("retry", "http", "-X", "PUT", "--data-binary", "@large", "-o", "file", url)
	s.expect("% of 64 MiB sent, ")
	close(seen)
	s.exits(0)
	s.checkScreen(80)
}

// The silent transfers begin before another one, whose line is seen.
func noTransferInSilence(s *console, url string, seen chan struct{}) {
	s.start("sh", "-c", "retry http -s -o 1 $0/silent & retry http -q -o 2 $0/silent & retry http -o 3 $0/silent 2>notes & "+
		"retry http -o 4 $0; wait; cat notes", url)
	const line = "retry: 50% of 4 MiB, "
	s.expect(line, line, line, line) // by now the others would have drawn a line, too
	close(seen)
	s.exits(0)
	s.checkScreen(80)
	if strings.Contains(string(s.raw), "of 2 MiB") {
		s.Errorf("silent transfer: got %q, want no line", s.raw)
	}
}
