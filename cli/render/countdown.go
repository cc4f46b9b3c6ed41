package render

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// countdown is one line at the bottom of the terminal, drawn over itself, and gone before anything else is written.
type countdown struct {
	w            io.Writer
	screen       *os.File
	inForeground func() bool // nil: no countdown
	drawn        bool
}

const (
	rarely    = time.Hour // where nothing is to be drawn
	eraseLine = "\r\x1b[K"
)

// draw shows the time left and returns the time until it will have changed. In the background, or where stderr is no
// terminal, it draws nothing and looks again after a while.
func (c *countdown) draw(t *task.Task, left time.Duration) time.Duration {
	if c.inForeground == nil || !term.IsTerminal(int(c.screen.Fd())) {
		return rarely
	}
	tick := left % time.Second
	if tick == 0 {
		tick = time.Second
	}
	if !c.inForeground() {
		c.drawn = false // the shell has written over it
		return tick
	}
	seconds := (left + time.Second - 1).Truncate(time.Second)
	next := *t
	next.AttemptCount++
	// Read anew each time: the window may have another size. The last column stays free, where some terminals wrap early.
	width, _, err := term.GetSize(int(c.screen.Fd()))
	if err != nil || width < 2 {
		return tick
	}
	text := fmt.Sprintf("retry: attempt %s in %s", attemptCount(&next), text.Duration(seconds))
	_, _ = fmt.Fprint(c.w, eraseLine+ansi.Truncate(text, width-1, ""))
	c.drawn = true
	return tick
}

// clear removes the line.
func (c *countdown) clear() {
	if c.drawn {
		_, _ = fmt.Fprint(c.w, eraseLine)
		c.drawn = false
	}
}
