//go:build unix

package e2e

import (
	"database/sql"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/10f93571/retry/internal/testkit"
)

// A picture begins in the upper left corner, clears each line before it writes it, and at last what is below.
const (
	pictureBegins = "\x1b[H"
	pictureEnds   = "\x1b[J"
)

// TestWatch checks status --watch on a pseudo-terminal.
func TestWatch(t *testing.T) {
	binary := buildForTerminals(t)
	tests := map[string]func(*console){
		"it shows what is new":                 watchShowsWhatIsNew,
		"one task":                             watchShowsATask,
		"it fits the window, also a new one":   watchFitsTheWindow,
		"Ctrl-C leaves the terminal as it was": watchLeavesTheTerminal,
		"in the background it is quiet":        watchIsQuietInTheBackground,
		"it keeps no reader in the journal":    watchKeepsNoReader,
		"a task that there is not is an error": watchOfNoTask,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(newConsole(t, binary)) })
	}
}

// picture waits for the next whole picture and returns its lines.
func (s *console) picture() []string {
	s.Helper()
	s.expect(pictureBegins)
	text := strings.TrimSuffix(s.expect(pictureEnds), pictureEnds)
	text = strings.NewReplacer("\x1b[K", "", "\r", "").Replace(text)
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func (s *console) expectPicture(text string) {
	s.Helper()
	s.pictureWith(func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), text) })
}

// pictureWith waits for a picture that meets the condition. Earlier pictures may already be in the terminal.
func (s *console) pictureWith(wanted func(lines []string) bool) {
	s.Helper()
	for end := time.Now().Add(patience); ; {
		lines := s.picture()
		if wanted(lines) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("got the last picture\n%s\nwant another", strings.Join(lines, "\n"))
		}
	}
}

func watchShowsWhatIsNew(s *console) {
	s.start("retry", "status", "--watch")
	if got := s.picture(); len(got) != 1 || got[0] != "no tasks yet" {
		s.Errorf("empty journal: got %q, want no tasks yet", got)
	}
	s.output("retry", "--", "echo", "first")
	s.expectPicture("echo first")
	s.output("retry", "--", "echo", "second")
	s.expectPicture("echo second")
	s.press(interruptKey)
	s.diesOf(syscall.SIGINT)
}

func watchShowsATask(s *console) {
	s.output("retry", "--", "sh", "-c", "test $RETRY_ATTEMPT = 2 || exit 3", "--")
	s.start("retry", "status", "--watch", "--state", filepath.Join(s.dir, "state"), s.newest())
	s.expectPicture("exit 3")
	s.press(interruptKey)
	s.diesOf(syscall.SIGINT)
}

// newest is the id of the newest task.
func (s *console) newest() string {
	_, row, _ := strings.Cut(s.output("retry", "status"), "\n")
	return strings.Fields(row)[0]
}

// However small the window is, no line wraps and none scrolls.
func watchFitsTheWindow(s *console) {
	for range 25 {
		s.output("retry", "-q", "--", "echo", strings.Repeat("long", 30))
	}
	s.start("retry", "status", "--watch", "--limit", "0")
	fits := func(width, height int) {
		s.Helper()
		got := s.picture()
		for _, line := range got {
			if n := len([]rune(plainText(line))); n >= width {
				s.Errorf("got %d characters, want at most %d: %q", n, width, line)
			}
		}
		if len(got) != height-1 || plainText(got[height-2]) != "… and older ones" {
			s.Errorf("%d lines in a window of %d:\n%s", len(got), height, strings.Join(got, "\n"))
		}
	}
	fits(80, 24)
	s.resize(40)
	s.pictureWith(func(lines []string) bool { return len([]rune(plainText(lines[1]))) < 40 })
	fits(40, 24)
	s.press(interruptKey)
	s.diesOf(syscall.SIGINT)
}

// plainText is a line without colours.
func plainText(line string) string {
	for {
		before, after, colored := strings.Cut(line, "\x1b[")
		if !colored {
			return line
		}
		_, after, _ = strings.Cut(after, "m")
		line = before + after
	}
}

// Nothing has to be restored, whatever ends it: it uses no alternate screen, hides no cursor and sets no raw mode.
func watchLeavesTheTerminal(s *console) {
	s.shell()
	s.enter("stty -a >before; retry status --watch")
	s.picture()
	s.press(interruptKey)
	s.expect(prompt)
	s.enter("echo status-$?; stty -a | cmp - before && echo same")
	s.expect("status-130", "same")
	if i := strings.Index(string(s.raw), "\x1b[?"); i >= 0 && strings.Contains(string(s.raw[i:]), "\x1b[?25l") {
		s.Errorf("got %q, want a visible cursor", s.raw)
	}
	s.enter("exit 0")
	s.exits(0)
}

func watchIsQuietInTheBackground(s *console) {
	s.shell()
	s.enter("retry status --watch")
	s.picture()
	s.press("\x1a")
	s.expect(prompt)
	s.enter("retry -- echo news; bg; for i in 1 2 3; do kill -WINCH %1; done; echo rested") // it would draw at once
	s.expect("rested", prompt)
	s.idle()
	s.enter("echo done")
	if got := s.expect("done", prompt); strings.Contains(got, pictureBegins) {
		s.Errorf("it draws over the shell: %q", got)
	}
	s.enter("fg")
	s.expectPicture("echo news")
	s.press(interruptKey)
	s.expect(prompt)
	s.enter("exit 0")
	s.exits(0)
}

// Between two pictures the WAL can be reset: a reader that stays would let it grow without end.
func watchKeepsNoReader(s *console) {
	s.output("retry", "--", "true")
	s.start("retry", "status", "--watch")
	s.picture()
	s.idle()
	db, err := sql.Open("sqlite3", filepath.Join(s.dir, "state", "journal.db"))
	testkit.Must(s, err)
	defer func() { _ = db.Close() }()
	var busy, frames, moved int
	testkit.Must(s, db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved))
	if busy != 0 {
		s.Error("got a WAL that a reader keeps from being reset, want it reset")
	}
	s.press(interruptKey)
	s.diesOf(syscall.SIGINT)
}

func watchOfNoTask(s *console) {
	s.start("retry", "status", "--watch", "nope")
	s.expect(`no such task: "nope"`)
	s.exits(125)
}
