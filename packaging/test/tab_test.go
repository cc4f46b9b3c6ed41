//go:build packages

// Package packages_test tries what only an installed package has. packaging/test/deb runs it, with the chroot in RETRY_TEST_ROOT.
package packages_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/creack/pty"
)

// patience bounds a wait for what has to come.
const patience = time.Minute

// TestTab types the beginning of a word and Tab in each shell, as it starts for a user, and waits for the rest of the word.
func TestTab(t *testing.T) {
	root := os.Getenv("RETRY_TEST_ROOT")
	if root == "" {
		t.Fatal("RETRY_TEST_ROOT is not set: packaging/test/deb sets it")
	}
	for _, row := range []struct {
		shell []string
		begin string // what the shell needs before
	}{
		{shell: []string{"bash", "-l", "-i"}, begin: ". /usr/share/bash-completion/bash_completion\n"},
		{shell: []string{"zsh", "-f", "-i"}, begin: "autoload -U compinit && compinit -D\n"},
		{shell: []string{"fish", "-i"}},
	} {
		t.Run(row.shell[0], func(t *testing.T) {
			cmd := exec.Command("chroot", append([]string{root}, row.shell...)...)
			cmd.Env = []string{"HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm", "LANG=C.UTF-8", "PS1=ready> "}
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = terminal.Close(); _ = cmd.Wait() }()
			s := screen{t: t, terminal: terminal, came: make(chan []byte)}
			go s.read()
			s.typed(row.begin + "echo rea''dy\n")
			s.expect("ready")
			s.typed("retry requ\t")
			s.expect("requeue")
			s.typed("--dea\t")
			s.expect("--dead")
		})
	}
}

type screen struct {
	t        *testing.T
	terminal *os.File
	came     chan []byte
	text     []byte
}

func (s *screen) read() {
	defer close(s.came)
	for {
		chunk := make([]byte, 4096)
		n, err := s.terminal.Read(chunk)
		if n > 0 {
			s.came <- chunk[:n]
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) typed(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.terminal, text); err != nil {
		s.t.Fatal(err)
	}
}

// escapes are colours and movements of the cursor, which shells put between letters.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B|[\r\x08]`)

// expect waits until the text stands in what came, and forgets all up to it.
func (s *screen) expect(text string) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		if _, rest, found := bytes.Cut(escapes.ReplaceAll(s.text, nil), []byte(text)); found {
			s.text = rest
			return
		}
		select {
		case chunk, more := <-s.came:
			if !more {
				s.t.Fatalf("the shell ended; got %q, want %q", s.text, text)
			}
			s.text = append(s.text, chunk...)
		case <-deadline:
			s.t.Fatalf("got %q, want %q", s.text, text)
		}
	}
}
