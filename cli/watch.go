package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/task"
)

// watchInterval is the time between two pictures.
const watchInterval = time.Second

// watch draws a report over and over on the terminal, until a signal ends it. The terminal is left in no state of its own, whatever
// ends it: the cursor stays visible, at the end of the picture.
func watch(p *Process, draw func(io.Writer, render.Screen) error) error {
	if !term.IsTerminal(int(p.Stdout.Fd())) {
		return errors.New("--watch draws on a terminal, and stdout is none\nhint: leave it out; for a program: retry status --json")
	}
	signals := make(chan os.Signal, session.SignalBuffer)
	session.Notify(signals)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for drawn := false; ; {
		if proc.Interactive(p.Stdout) { // in the background it would draw over the shell
			if err := drawFrame(p, draw, drawn); err != nil {
				return err
			}
			drawn = true
		}
		select {
		case <-ticker.C:
		case sig := <-signals: // another size is one to draw for
			if task.Stops(sig) {
				session.DieOf(sig)
			}
		}
	}
}

// drawFrame writes a picture at once, so that it does not flicker. Before the first one, what stands on the screen scrolls up.
func drawFrame(p *Process, draw func(io.Writer, render.Screen) error, drawn bool) error {
	screen := render.ScreenOf(p.Stdout, p.Getenv)
	width, height, err := term.GetSize(int(p.Stdout.Fd()))
	if err != nil || width < 2 || height < 2 {
		width, height = 80, 24
	}
	// The last column stays free, where some terminals wrap early, and the last line for the cursor.
	screen.Width, screen.Height = width-1, height-1
	var text bytes.Buffer
	if err := draw(&text, screen); err != nil {
		return err
	}
	scroll := ""
	if !drawn {
		scroll = strings.Repeat("\n", height-1)
	}
	_, err = io.WriteString(p.Stdout, scroll+screen.Frame(text.String()))
	return err
}
