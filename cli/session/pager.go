package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

// PagerFlag is a flag of the commands whose reports may be long.
type PagerFlag struct {
	NoPager bool `help:"Print what is longer than the terminal without a pager ($PAGER, or less)."`
}

// Paged draws a report on stdout. What is longer than the terminal goes through a pager.
func (p *Host) Paged(flag PagerFlag, draw func(io.Writer, render.Screen) error) error {
	screen := render.ScreenOf(p.Stdout, p.Getenv)
	_, height, err := term.GetSize(int(p.Stdout.Fd()))
	if err != nil || flag.NoPager || screen.Width == 0 || p.Getenv("TERM") == "dumb" {
		return draw(p.Stdout, screen)
	}
	pager := &pager{process: p, rows: height - 1}
	return pager.close(draw(pager, screen))
}

// pager keeps what is written until it is longer than the terminal, and then starts a program that shows it.
type pager struct {
	process *Host
	rows    int
	kept    bytes.Buffer
	cmd     *exec.Cmd // nil until it is started
	input   io.WriteCloser
}

func (g *pager) Write(b []byte) (int, error) {
	if g.input != nil {
		return g.input.Write(b)
	}
	g.kept.Write(b)
	if bytes.Count(g.kept.Bytes(), []byte("\n")) <= g.rows {
		return len(b), nil
	}
	g.start()
	_, err := g.input.Write(g.kept.Bytes())
	return len(b), err
}

// start starts the pager; where there is none, what follows goes to stdout.
func (g *pager) start() {
	g.input = g.process.Stdout
	command, set := flags.LookUp(g.process.Environ, "PAGER")
	if !set {
		command = "less"
	}
	if _, err := exec.LookPath("less"); command == "" || !set && err != nil {
		return
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = g.process.Stdout, g.process.Stderr
	cmd.Env = g.process.Environ
	if g.process.Getenv("LESS") == "" { // quit where it fits, keep colours, leave the text on the screen
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "LESS=FRX")
	}
	input, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // Ctrl-C is for the pager, which goes on
	g.cmd, g.input = cmd, input
}

// close waits until the pager has ended. That somebody closed it before the end is no error.
func (g *pager) close(err error) error {
	if g.cmd == nil {
		if g.input == nil {
			_, failed := g.process.Stdout.Write(g.kept.Bytes())
			return errors.Join(err, failed)
		}
		return err
	}
	_ = g.input.Close()
	_ = g.cmd.Wait()
	if code := g.cmd.ProcessState.ExitCode(); code == task.ExitNotFound || code == task.ExitNotExecutable {
		return fmt.Errorf("the pager %q cannot be run\nhint: set PAGER, or see --no-pager", g.process.Getenv("PAGER"))
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
