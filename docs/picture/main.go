// Command picture draws the terminal of the README: it runs retry in a real terminal and writes what the terminal shows as an SVG.
//
//	go run ./docs/picture > docs/picture/terminal.svg
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/creack/pty"
)

// backup fails twice, and then succeeds.
const backup = `#!/bin/sh
echo "dumping shop"
[ "$RETRY_ATTEMPT" -ge 3 ] || { echo "db1: connection refused" >&2; exit 75; }
echo "dumped 81 tables"
`

const columns, rows = 72, 40

func main() {
	svg, err := draw()
	if err == nil {
		_, err = os.Stdout.WriteString(svg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// draw builds retry, shows it in a terminal, and returns the picture.
func draw() (string, error) {
	dir, err := os.MkdirTemp("", "retry-picture-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if said, err := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "retry"), "github.com/10f93571/retry").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build retry: %w: %s", err, said)
	}
	if err := os.WriteFile(filepath.Join(dir, "backup.sh"), []byte(backup), 0o700); err != nil {
		return "", err
	}
	s := &show{dir: dir}
	err = errors.Join(
		s.killed("retry --id nightly -b exp:2s -- ./backup.sh", "next in"), // as a power failure would
		s.run("retry status"),
		s.run("retry resume --all"),
		s.run("retry status"),
	)
	return s.screen.svg(), err
}

// show runs command lines one after the other, on one screen.
type show struct {
	dir    string
	screen screen
}

// run types a command line at a prompt, and returns when the command has ended.
func (s *show) run(line string) error { return s.killed(line, "") }

// killed is run, but kills the command as soon as it has shown the text.
func (s *show) killed(line, after string) error {
	s.screen.print("\x1b[1m$ " + line + "\x1b[0m\r\n")
	words := strings.Fields(line)
	cmd := exec.Command(filepath.Join(s.dir, "bin", words[0]), words[1:]...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TERM=xterm-256color", "LANG=C.UTF-8", "TZ=UTC", "RETRY_STATE_DIR=" + filepath.Join(s.dir, "state"),
	}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		return err
	}
	defer terminal.Close()
	var shown bytes.Buffer
	for input := bufio.NewReader(terminal); ; {
		b, err := input.ReadByte() // EIO, when the last process has closed the terminal
		if err != nil {
			break
		}
		shown.WriteByte(b)
		if after != "" && b == '\n' && strings.Contains(shown.String(), after) {
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
			after = ""
		}
	}
	s.screen.print(shown.String())
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			return fmt.Errorf("%s: %w", line, err)
		}
		s.screen.print("\r\x1b[KKilled\r\n") // the word of a shell
	}
	return nil
}
