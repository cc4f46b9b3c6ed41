//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// TestTerminal plays what people do at a terminal, with the real binary on a real one.
func TestTerminal(t *testing.T) {
	binary := buildForTerminals(t)
	scenes := map[string]func(*console){
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
		"no countdown when stderr is a file":      noCountdownInAFile,
		"no countdown in the background":          noCountdownInTheBackground,
		"a command inherits what it would anyhow": inheritsTheSame,
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) { scene(newConsole(t, binary)) })
	}
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
	for range 5 { // whether retry or the command is the first to hear of it is up to the system
		s.enter("for i in 1 2 3; do echo $i >>rounds; retry -n 1 -- ./hang; done")
		s.expect("hanging")
		s.press(interruptKey)
		s.expect(prompt)
	}
	s.enter("echo last-$?")
	s.expect("last-130")
	if got, want := s.read("rounds"), strings.Repeat("1\n", 5); got != want {
		s.Errorf("the loops went through %q, want %q", got, want)
	}
}

func ctrlCEndsAWait(s *console) {
	s.start("retry", "-b", "constant:1h", "-j", "none", "--", "false")
	s.expect("attempt 2/5 in 1h")
	s.press(interruptKey)
	s.diesOf(syscall.SIGINT)
	s.checkTask(taskRow{Status: "CANCELLED", Reason: "cancelled", AttemptCount: 1})
	s.checkScreen(80, `retry: attempt 1/5: exit 1 after .*; next in 1h`, `retry: cancelled by SIGINT \(retry status .*\)`)
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
		s.Errorf("a countdown in the background: %q", text)
	}
}

func hangingUpInterrupts(s *console) {
	s.start("retry", "--", "./hang")
	s.expect("hanging")
	testkit.Must(s, s.master.Close())
	s.diesOf(syscall.SIGHUP)
	s.checkTask(taskRow{Status: "PENDING", Interrupted: true, AttemptCount: 1})
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
		s.Errorf("the terminal shows %q for a password", text)
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
		s.Errorf("a countdown in the background: %q", text)
	}
}

// inheritsTheSame needs no terminal. It looks at what SQLite, the Go runtime and retry itself could leave to the command.
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
			s.Errorf("%s, without retry:\n%s\nwith it:\n%s", name, bare, wrapped)
		}
	}
}

// What keys send, and what a shell says when it waits for a line.
const (
	interruptKey = "\x03"
	endKey       = "\x04"
	suspendKey   = "\x1a"
	prompt       = "your turn> "
)

// scripts are the commands of the scenes.
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
	"second":   `[ $RETRY_ATTEMPT = 2 ] && echo second attempt || { echo first attempt; exit 1; }`,
	"ask":      `printf 'sure? '; read -r x; echo "<$x>"; [ "$x" = yes ]`,
	"password": `read -rsp 'password? ' x; echo "<$x>"`,
}
