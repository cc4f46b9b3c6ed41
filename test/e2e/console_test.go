//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
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

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// console is a terminal that a test types at, and the directory in which its commands run.
type console struct {
	*testing.T
	dir    string
	env    []string
	master *os.File
	slave  *os.File
	cmd    *exec.Cmd
	chunks chan []byte // what the screen shows, as it comes; closed when nobody is left to write
	raw    []byte      // all of it so far
	seen   int         // how much of it expect has passed
}

// buildForTerminals builds retry for a test with terminals.
func buildForTerminals(t *testing.T) string {
	t.Helper()
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) { // by nohup, or in the background: not so at a terminal
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	return buildRetry(t)
}

func newConsole(t *testing.T, binary string) *console {
	master, slave, err := pty.Open()
	testkit.Must(t, err)
	testkit.Must(t, syscall.SetNonblock(int(master.Fd()), true)) // or Close would wait for the end of watch
	t.Cleanup(func() { _ = master.Close(); _ = slave.Close() })
	s := &console{T: t, dir: t.TempDir(), master: master, slave: slave, chunks: make(chan []byte)}
	s.env = append(os.Environ(), "GITHUB_ACTIONS=", "GITLAB_CI=", "RETRY_STATE_DIR="+filepath.Join(s.dir, "state"),
		"HOME="+s.dir, "LC_ALL=C", "TERM=xterm",
		"PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "PS1="+prompt)
	for name, code := range scripts {
		testkit.Must(t, os.WriteFile(filepath.Join(s.dir, name), []byte("#!/bin/sh\n"+code+"\n"), 0o700))
	}
	s.resize(80)
	go s.watch()
	return s
}

// watch sends what the screen shows to the channel, until the last process that could write to it is gone.
func (s *console) watch() {
	defer close(s.chunks)
	for {
		chunk := make([]byte, 4096)
		n, err := s.master.Read(chunk)
		if err != nil {
			return
		}
		select {
		case s.chunks <- chunk[:n]:
		case <-s.Context().Done():
			return
		}
	}
}

// command is a command that has the terminal as its own.
func (s *console) command(argv ...string) *exec.Cmd {
	cmd := exec.Command("env", argv...) // looks it up in the new PATH
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.slave, s.slave, s.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd
}

func (s *console) launch(cmd *exec.Cmd) {
	s.Helper()
	testkit.Must(s, cmd.Start())
	testkit.Must(s, s.slave.Close()) // so that the screen ends with the last process
	s.cmd = cmd
	s.Cleanup(func() {
		s.clear()
		_ = s.master.Close()
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

func (s *console) start(argv ...string) {
	s.Helper()
	s.launch(s.command(argv...))
}

// shell starts an interactive shell. It shows neither what is typed nor colours.
func (s *console) shell() {
	s.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		s.Skip(err)
	}
	s.start("bash", "--norc", "--noediting", "-i")
	s.expect(prompt)
	s.enter("stty -echo")
	s.expect(prompt)
}

// expect waits until the screen has shown each of the texts, one after the other, and returns all that it has shown
// meanwhile.
func (s *console) expect(texts ...string) string {
	s.Helper()
	begun, late := s.seen, time.After(patience)
	for _, text := range texts {
		for !bytes.Contains(s.raw[s.seen:], []byte(text)) {
			if !s.readMore(late) {
				s.Fatalf("the screen does not show %q; it went on with %q, after %q", text, s.raw[s.seen:],
					s.raw[:s.seen])
			}
		}
		s.seen += bytes.Index(s.raw[s.seen:], []byte(text)) + len(text)
	}
	return string(s.raw[begun:s.seen])
}

// readMore waits for what the screen shows next. It returns false when nothing more can come, or on timeout.
func (s *console) readMore(late <-chan time.Time) bool {
	select {
	case chunk, more := <-s.chunks:
		s.raw = append(s.raw, chunk...)
		return more
	case <-late:
		return false
	}
}

// number is the number that the screen shows after a text.
func (s *console) number(after string) int {
	s.Helper()
	s.expect(after)
	n, err := strconv.Atoi(strings.TrimSpace(s.expect("\n")))
	testkit.Must(s, err)
	return n
}

func (s *console) press(key string) {
	s.Helper()
	_, err := s.master.WriteString(key)
	testkit.Must(s, err)
}

// idle waits until every process at the terminal sleeps. A program that has just printed a prompt may not read yet, so
// a key that sends a signal could come too soon for it.
func (s *console) idle() {
	s.Helper()
	for end := time.Now().Add(patience); strings.ContainsAny(s.ps("stat="), "RDU"); { // U is the D of BSD
		if time.Now().After(end) {
			s.Fatalf("got busy processes, want idle ones:\n%s", s.ps("stat,args"))
		}
	}
}

// ps lists the processes at the terminal.
func (s *console) ps(columns string) string {
	// ps fails where there is no process.
	out, _ := exec.Command("ps", "-o", columns, "-t", strings.TrimPrefix(s.slave.Name(), "/dev/")).Output()
	return string(out)
}

// clear kills what a failed test has left at the terminal.
func (s *console) clear() {
	if _, err := s.master.Stat(); err != nil {
		return // hung up: the name may be that of another terminal by now
	}
	for pid := range strings.FieldsSeq(s.ps("pid=")) {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

func (s *console) enter(line string) {
	s.Helper()
	s.press(line + "\n")
}

func (s *console) resize(width uint16) {
	s.Helper()
	raw, err := s.master.SyscallConn() // pty.Setsize would have it block again
	testkit.Must(s, err)
	testkit.Must(s, raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width})
	}))
	testkit.Must(s, err)
}

func (s *console) signal(pid int, sig syscall.Signal) {
	s.Helper()
	testkit.Must(s, syscall.Kill(pid, sig))
}

// wait waits until no process uses the terminal any more, and returns how the first one ended.
func (s *console) wait() syscall.WaitStatus {
	s.Helper()
	late := time.After(patience)
	for s.readMore(late) {
	}
	s.seen = len(s.raw)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		s.Fatalf("%q: got no end, want one; screen %q", s.cmd.Args, s.raw)
	}
	return s.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func (s *console) exits(code int) {
	s.Helper()
	if status := s.wait(); !status.Exited() || status.ExitStatus() != code {
		s.Errorf("got status %#x, want exit code %d; screen %q", status, code, s.raw)
	}
}

func (s *console) diesOf(sig syscall.Signal) {
	s.Helper()
	if status := s.wait(); !status.Signaled() || status.Signal() != sig {
		s.Errorf("got status %#x, want death by %v; screen %q", status, sig, s.raw)
	}
}

// taskRow is the part of a task that the tests compare.
type taskRow struct {
	Status       string `json:"status"`
	Reason       string `json:"reason"`
	Interrupted  bool   `json:"interrupted"`
	AttemptCount int    `json:"attempt_count"`
}

// checkTask compares the only task of the journal.
func (s *console) checkTask(want taskRow) {
	s.Helper()
	var journal struct{ Tasks []taskRow }
	testkit.Must(s, json.Unmarshal([]byte(s.output("retry", "status", "--json")), &journal))
	if !slices.Equal(journal.Tasks, []taskRow{want}) {
		s.Errorf("journal: got %+v, want %+v", journal.Tasks, want)
	}
}

// output runs a command away from the terminal.
func (s *console) output(argv ...string) string {
	s.Helper()
	cmd := s.command(argv...)
	stderr := new(strings.Builder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = nil, nil, stderr, nil
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("%q: %v\n%s", argv, err, stderr)
	}
	return string(out)
}

func (s *console) read(name string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	testkit.Must(s, err)
	return string(text)
}

// checkScreen compares the lines on the screen, up to where expect has read; a pattern matches each line as a whole.
func (s *console) checkScreen(width int, patterns ...string) {
	s.Helper()
	got := strings.Join(s.screen(width), "\n")
	want := regexp.MustCompile("^" + strings.Join(patterns, "\n") + "$")
	if !want.MatchString(got) {
		s.Errorf("screen: got\n%s\nwant\n%v\nraw %q", got, want, s.raw)
	}
}

var colour = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// screen replays what was written to the terminal. A line that was too long and went on in the next row is one line
// again.
func (s *console) screen(width int) []string {
	s.Helper()
	rows := [][]byte{nil}
	wrapped := map[int]bool{} // rows that go on in the next one
	row, column := 0, 0
	newRow := func() {
		if row++; row == len(rows) {
			rows = append(rows, nil)
		}
	}
	for rest := s.raw[:s.seen]; len(rest) > 0; {
		switch {
		case bytes.HasPrefix(rest, []byte("\x1b[K")):
			rows[row] = rows[row][:min(column, len(rows[row]))]
			rest = rest[2:]
		case colour.Match(rest):
			rest = rest[len(colour.Find(rest))-1:]
		case rest[0] == '\r':
			column = 0
		case rest[0] == '\n':
			newRow()
		case rest[0] < ' ' || rest[0] > '~':
			s.Fatalf("unknown control sequence %q", rest)
		default:
			if column == width {
				wrapped[row], column = true, 0
				newRow()
			}
			for len(rows[row]) <= column {
				rows[row] = append(rows[row], ' ')
			}
			rows[row][column] = rest[0]
			column++
		}
		rest = rest[1:]
	}
	return joined(rows, wrapped)
}

// joined makes lines of rows, without the empty one at the end.
func joined(rows [][]byte, wrapped map[int]bool) []string {
	lines := []string{""}
	for i, row := range rows {
		lines[len(lines)-1] += string(row)
		if !wrapped[i] {
			lines = append(lines, "")
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
